/* JSON in (RFC 8259, strictly) and out.
 *
 * cJSON does the parsing of parameters; what it is lax about or loses is dealt with here, once:
 * the text is checked strictly first (whole input, UTF-8, depth, number grammar); then cJSON gets a copy in
 * which NUL travels as C0 80, half of a surrogate pair as C0 81 81 and a number as a string that starts with
 * FF (neither C0 nor FF occurs in UTF-8), so that no text ends early and no number goes through a double.
 * Where the exact text of a value matters (ids, what is passed through), take json_member's span. */
#ifndef RPC_JSON_H
#define RPC_JSON_H

#include "err.h"
#include "span.h"

struct cJSON;

#define JSON_DEPTH_MAX 512

/* 0 when `text` is exactly one JSON value (white space around it is fine); else -1 with ERR_PARSE, the
 * message saying what is wrong at which byte. Linear in n, no recursion. */
int json_check(struct span text, struct err *err);
/* Whether text that failed the check only lacks its end. */
bool json_is_cut(struct span text);

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };
/* Kind of a checked value, by its first character. */
enum json_kind json_kind(struct span value);

/* The exact text of a member's value (no white space around it) of a checked object; false when there is
 * none. Keys are compared after decoding, case-sensitively; of several the last counts, *count (may be NULL)
 * gets their number. */
bool json_member(struct span object, const char *key, struct span *value, int *count);

/* The same for several keys at once: value and count of each (s == NULL and 0 where there is none). */
void json_members(struct span object, const char *const *keys, size_t n, struct span *values, int *counts);

/* Walks the members of a checked object in order, or the elements of a checked array: start with *at = 0;
 * false at the end. `key` is the text of a string, with its quotes. */
bool json_next_member(struct span object, size_t *at, struct span *key, struct span *value);
bool json_element(struct span array, size_t *at, struct span *value);

/* Decodes the checked text of a string into out (appends); false when it is none. Lone surrogates come out as
 * U+FFFD. */
bool json_string_text(struct span value, struct buf *out);
/* True for the checked text of a string that decodes to exactly `text`. */
bool json_string_is(struct span value, const char *text);

/* Parses checked text with cJSON, as said above. Free with cJSON_Delete. NULL (memory aside) only when there
 * are more than JSON_NODES_MAX values in it: a node takes a hundred bytes where its text may take two. */
#define JSON_NODES_MAX 131072
struct cJSON *json_parse(struct span text);

/* The exact text of a number node, NULL when the node is none (null included). */
const char *json_number(const struct cJSON *node);
/* Whether a string node, or the key under which a node stands, escapes half of a surrogate pair: no
 * character, so what is taken from it (U+FFFD) isn't what was sent. */
bool json_has_half_pair(const struct cJSON *node);
/* Takes the decoded bytes of a string node (NUL and all; free them; a NUL is behind); NULL when the node is
 * none. */
char *json_take_string(struct cJSON *node, size_t *len);
/* The same for the key under which the node stands in its object. */
char *json_take_key(struct cJSON *node, size_t *len);

/* Writers: append to out. Strings are written as UTF-8, escaped as RFC 8259 wants (control characters, quote,
 * backslash); bytes that are no UTF-8 as U+FFFD. The line separators U+2028 and U+2029 stay as they are. */
void json_put_string(struct buf *out, const char *s, size_t n);
/* Appends valid JSON as it may go to a terminal, whoever has written it: on one line (white space between
 * tokens becomes blanks), and with what is left of control characters in strings (DEL and U+0080 to U+009F)
 * escaped. It says the same. */
void json_put_shown(struct buf *out, struct span json);
/* How many bytes it writes for valid UTF-8, without the quotes. */
size_t json_string_len(const char *s, size_t n);
void json_puts(struct buf *out, const char *s);

/* Object members, with the comma where one is needed: json_key(out, "pid"), then the value. An object is
 * begun with buf_addc(out, '{') and ended with '}'. */
void json_key(struct buf *out, const char *key);
void json_put_int(struct buf *out, long long value);
void json_put_bool(struct buf *out, bool value);
void json_member_string(struct buf *out, const char *key, const char *s); /* NULL: null */
void json_member_text(struct buf *out, const char *key, const char *s, size_t n);
void json_member_int(struct buf *out, const char *key, long long value);
void json_member_int_or_null(struct buf *out, const char *key, long long value); /* negative: null */
void json_member_bool(struct buf *out, const char *key, bool value);
void json_member_seconds(struct buf *out, const char *key, long long ms); /* 1234 as 1.234 */

/* Copies checked JSON with the white space between tokens left out. */
void json_compact(struct buf *out, struct span text);

#endif
