#include "edit_whole.h"

#include "edit_file.h"
#include "edit_history.h"
#include "edit_path.h"
#include "edit_write.h"

static int rewrite(struct edit_whole *w, struct edit_path *p, const char *data, size_t n,
                   struct undo_store *undo, struct err *err)
{
    struct edit_file f EDIT_FILE_AUTO = EDIT_FILE_INIT;
    if (edit_file_load(&f, p, err) < 0 || (journal_has(undo, p) && journal_recover(undo, p, &f, err) < 0))
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
