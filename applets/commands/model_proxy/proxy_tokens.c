#include "proxy_tokens.h"

#include <stdbool.h>
#include <string.h>

#define ENCODED_LEAST 1024 /* a string of so many bytes without a blank is an encoded file, no text */
#define ENCODED_BASE 1600  /* a picture costs about that, whatever it weighs */
#define ENCODED_BYTES 30   /* and as much for each so many bytes, for those that are large */
#define ENCODED_MOST 8000
#define PDF "JVBERi" /* how one begins in base64: it has any number of pages */

static bool is_word(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == ' ';
}

/* Thirds of a token: of words four or five bytes are one, of signs and digits one or a few; other scripts
 * come to one or two for each character. */
static long long thirds(const char *s, size_t n)
{
    long long sum = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        sum += is_word(c) ? 1 : c < 0x80 ? 3 : c >= 0xC0 ? 6 : 0;
    }
    return sum;
}

/* Base64 in whichever form, behind a data: address or not. */
static bool is_encoded(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n && ((is_word((unsigned char)s[i]) && s[i] != ' ') || strchr("0123456789+/=-_:;,.", s[i])))
        i++;
    return i == n && n >= ENCODED_LEAST;
}

static long long encoded(const char *s, size_t n)
{
    long long tokens = ENCODED_BASE + (long long)(n / ENCODED_BYTES);
    const char *comma = memchr(s, ',', n < 64 ? n : 64); /* of a data: address */
    const char *data = comma ? comma + 1 : s;
    bool pdf = n - (size_t)(data - s) > sizeof PDF && memcmp(data, PDF, sizeof PDF - 1) == 0;
    return tokens < ENCODED_MOST || pdf ? tokens : ENCODED_MOST;
}

long long tokens_estimate(struct span json)
{
    long long sum = 0, tokens = 0;
    for (size_t i = 0; i < json.n;) {
        const char *s = json.s + i;
        size_t n = 0;
        while (i + n < json.n && !strchr("\" \\\n", s[n]))
            n++;
        if (i > 0 && s[-1] == '"' && is_encoded(s, n))
            tokens += encoded(s, n);
        else
            sum += thirds(s, n);
        if (i + n + 6 <= json.n && s[n] == '\\' && s[n + 1] == 'u') { /* a character of another script */
            sum += 6;
            i += 5;
        }
        sum += i + n < json.n;
        i += n + 1;
    }
    return tokens + sum / 3 + 1;
}
