/* Text of a page, made fit for a line: whatever a page calls its parts, it stays one line, of bounded length.
 */
#ifndef APPLETS_WEB_BROWSER_PAGE_TEXT_H
#define APPLETS_WEB_BROWSER_PAGE_TEXT_H

#include <stddef.h>

#include "buf.h"

#define PAGE_NAME_MAX 10000 /* bytes of a name or an input that are shown */
#define PAGE_VALUE_MAX 2000 /* of an address or another property */

/* Appends UTF-8 on one line: a line feed as \n, a tab as \t, any other control character and line separator
 * as a space. Of more than `max` bytes the rest is counted instead of shown. */
void page_text_line(struct buf *out, const char *s, size_t n, size_t max);

/* The same in double quotes; a quote and a backslash of the page's own have a backslash in front, so that
 * what stands behind the quotes is never the page's. A line feed and a tab are \n and \t there as well, and
 * no other text is. */
void page_text_quoted(struct buf *out, const char *s, size_t n, size_t max);

/* As it is where it is one plain word, as addresses and the values of most properties are, or else quoted. */
void page_text_word(struct buf *out, const char *s, size_t n, size_t max);

/* As page_text_line with line feeds and tabs as they are, and all of it: running text. */
void page_text_block(struct buf *out, const char *s, size_t n);

/* An address as a word; what a data: address holds in base64 is left out. */
void page_text_url(struct buf *out, const char *s, size_t n);

#endif
