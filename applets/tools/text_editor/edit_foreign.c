#include "edit_foreign.h"

#include "utf8.h"

/* How many more characters of UTF-8 beyond ASCII there are than bytes that are none. */
static long long balance(const char *s, size_t n)
{
    long long more = 0;
    int length;
    for (size_t i = 0; i<n; i += length> 0 ? (size_t)length : 1) {
        length = (unsigned char)s[i] < 0x80 ? 1 : utf8_char(s + i, n - i);
        more += (unsigned char)s[i] < 0x80 ? 0 : length > 0 ? 1 : -1;
    }
    return more;
}

#ifdef TOOLBOX_GUEST
#define guess(s, n) "GBK, Big5, Shift_JIS, EUC or one of single bytes"
#else
enum { IN_EUC = 1, IN_JIS = 2, IN_GBK = 4 };

/* Two bytes that may be a character of each: those of EUC are all high, and those of Shift-JIS leave a gap
 * for its small letters. */
static unsigned pair_of(unsigned a, unsigned b)
{
    bool low = b >= 0x40 && b != 0x7F && b < 0xFF;
    return (a > 0xA0 && a < 0xFF && b > 0xA0 && b < 0xFF ? IN_EUC : 0U) |
           (low && b < 0xFD && ((a > 0x80 && a < 0xA0) || (a >= 0xE0 && a < 0xFD)) ? IN_JIS : 0U) |
           (low && a > 0x80 && a < 0xFF ? IN_GBK : 0U);
}

static const char *guess(const char *s, size_t n)
{
    unsigned fits = IN_EUC | IN_JIS | IN_GBK;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] >= 0x80) {
            fits &= i + 1 < n ? pair_of((unsigned char)s[i], (unsigned char)s[i + 1]) : 0;
            i++;
        }
    return fits & IN_EUC   ? "GBK, EUC-JP or EUC-KR"
           : fits & IN_JIS ? "Shift_JIS or GBK"
           : fits & IN_GBK ? "GBK or Big5"
                           : "cp1252 or another one of single bytes";
}
#endif

int foreign_refuse(const struct coded *c, const struct splice *s, const char *shown, struct err *err)
{
    if (c->named || c->encoding != ENCODING_UTF_8 || balance(s->put, s->n_put) <= 0 ||
        balance(buf_str(c->text), c->text->len) >= 0)
        return 0;
    return err_set(
        err, ERR_TOOL,
        "Nothing was changed: %s is no UTF-8 but, by its bytes, %s, and what would come in is beyond "
        "ASCII. Give `encoding` (cp1252, latin-1; utf-8 puts it in all the same), or convert the file "
        "first: iconv -f GBK -t UTF-8",
        shown, guess(buf_str(c->text), c->text->len));
}
