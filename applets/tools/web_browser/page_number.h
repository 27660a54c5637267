/* Numbers of checked JSON, without floating point. */
#ifndef APPLETS_WEB_BROWSER_PAGE_NUMBER_H
#define APPLETS_WEB_BROWSER_PAGE_NUMBER_H

#include "json.h"

/* The whole part of a number, or of a string that holds one ("-12"); at most ±`max`, which is what is beyond
 * becomes. 0 for anything else. */
long long page_number(struct span value, long long max);

#endif
