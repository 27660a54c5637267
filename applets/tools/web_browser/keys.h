/* Keys, as a keyboard has them. */
#ifndef APPLETS_WEB_BROWSER_KEYS_H
#define APPLETS_WEB_BROWSER_KEYS_H

#include "web.h"

/* Types a text, character by character as keys; line breaks and tabs without a key. A very long one comes as
 * a whole. In rich text a line break is a paragraph of its own. No answer is waited for: what is asked next
 * is answered behind them all. */
void keys_type(struct action *a, struct text text, bool rich);

/* Presses a key with its modifiers: "Enter", "Control+Shift+ArrowLeft", "a". False when there is no such key.
 */
bool keys_press(struct action *a, const char *name);

/* A step: goes on when the page has dealt with the keys. */
void keys_flush(struct action *a);

#endif
