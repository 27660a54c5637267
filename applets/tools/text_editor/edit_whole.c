#include "edit_whole.h"

#include "edit_text.h"
#include "edit_write.h"

int edit_load(struct edit_file *f, struct edit_path *p, struct undo_store *undo, struct err *err)
{
    if (edit_file_load(f, p, err) < 0)
        return -1;
    undo_open(undo, false);
    return journal_has(undo, p) ? journal_recover(undo, p, f, err) : 0;
}

struct splice edit_difference(const struct edit_file *f, const char *new, size_t n_new)
{
    const char *now = buf_str(&f->data);
    size_t n = f->data.len, shorter = n < n_new ? n : n_new;
    size_t head = text_common_prefix(now, new, shorter);
    size_t tail = text_common_suffix(now + n, new + n_new, shorter - head);
    return (struct splice){
        .at = head, .cut = n - head - tail, .put = new + head, .n_put = n_new - head - tail};
}

static int rewrite(struct edit_whole *w, struct edit_path *p, const char *data, size_t n,
                   struct undo_store *undo, struct err *err)
{
    struct edit_file f EDIT_FILE_AUTO = EDIT_FILE_INIT;
    if (edit_load(&f, p, undo, err) < 0)
        return -1;
    bool append = w->how == WHOLE_APPEND;
    struct splice s = {
        .at = append ? f.data.len : 0, .cut = append ? 0 : f.data.len, .put = data, .n_put = n};
    w->size = f.data.len - s.cut + n;
    return edit_write(&f, p, &s, ENTRY_EDIT, undo, err);
}

int edit_whole(struct edit_whole *w, const char *path, size_t n_path, const char *data, size_t n,
               struct err *err)
{
    struct edit_path p EDIT_PATH_AUTO = EDIT_PATH_INIT;
    struct undo_store undo UNDO_AUTO = UNDO_INIT;
    if (edit_path_resolve(&p, path, n_path, true, err) < 0)
        return -1;
    if (p.exists && w->how == WHOLE_CREATE)
        return err_set(err, ERR_TOOL, "The path %s exists already (it is %s)", p.shown,
                       edit_type(p.st.st_mode));
    undo_open(&undo, true);
    w->created = !p.exists;
    w->size = n;
    int rc = p.exists ? rewrite(w, &p, data, n, &undo, err) : edit_create(&p, data, n, &undo, err);
    w->undoable = undo.why.msg[0] == '\0';
    return rc;
}
