#include "host/outlet/outlet_rules.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"

static const char digits[] = "0123456789";

/* ---- hosts ---- */

static const unsigned char mapped[12] = {[10] = 0xff, 0xff};

static bool is_v4(const struct in6_addr *a)
{
    return memcmp(a, mapped, sizeof mapped) == 0;
}

/* As one of IPv6, also those of IPv4. */
static bool address_of(const char *text, struct in6_addr *a)
{
    memcpy(a, mapped, sizeof mapped);
    return inet_pton(AF_INET, text, a->s6_addr + sizeof mapped) == 1 || inet_pton(AF_INET6, text, a) == 1;
}

/* Labels of letters, digits, '-' and '_', the last one not a number: those are addresses to some. */
static bool is_name(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";
    for (;;) {
        size_t n = strspn(text, letters);
        bool number = strspn(text, digits) == n || (text[0] == '0' && text[1] == 'x');
        if (n == 0 || n > 63 || (text[n] != '.' && (text[n] || number)))
            return false;
        if (!text[n])
            return true;
        text += n + 1;
    }
}

bool outlet_host(const char *text, size_t n, char host[OUTLET_HOST_MAX])
{
    struct in6_addr a;
    if (n > 1 && text[n - 1] == '.' && !memchr(text, ':', n))
        n--;
    if (n >= OUTLET_HOST_MAX)
        return false;
    for (size_t i = 0; i < n; i++) {
        host[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] | 0x20) : text[i];
        if (!host[i])
            return false;
    }
    host[n] = '\0';
    if (!address_of(host, &a))
        return is_name(host);
    return inet_ntop(is_v4(&a) ? AF_INET : AF_INET6, is_v4(&a) ? a.s6_addr + sizeof mapped : a.s6_addr, host,
                     OUTLET_HOST_MAX);
}

unsigned outlet_port(const char *text, size_t n)
{
    unsigned port = 0;
    if (n == 0 || n > 5)
        return 0;
    for (; n > 0; n--, text++) {
        if (*text < '0' || *text > '9')
            return 0;
        port = port * 10 + (unsigned)(*text - '0');
    }
    return port < 65536 ? port : 0;
}

/* ---- addresses ---- */

static bool same_bits(const unsigned char *a, const unsigned char *b, unsigned bits)
{
    unsigned left = bits % 8;
    return memcmp(a, b, bits / 8) == 0 && (left == 0 || (a[bits / 8] ^ b[bits / 8]) >> (8 - left) == 0);
}

static bool is_public_v4(const unsigned char *a)
{
    static const struct {
        unsigned char at[3], bits;
    } others[] = {
        {{0}, 8},
        {{10}, 8},
        {{100, 64}, 10},
        {{127}, 8},
        {{169, 254}, 16},
        {{172, 16}, 12},
        {{192, 0, 0}, 24},
        {{192, 0, 2}, 24},
        {{192, 88, 99}, 24},
        {{192, 168}, 16},
        {{198, 18}, 15},
        {{198, 51, 100}, 24},
        {{203, 0, 113}, 24},
        {{224}, 3}, /* multicast, reserved */
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (same_bits(a, others[i].at, others[i].bits))
            return false;
    return true;
}

/* Of IPv6 what is handed out to networks, and what a gateway makes of addresses of IPv4. */
static bool is_public(const struct in6_addr *address)
{
    static const unsigned char gateway[12] = {0, 0x64, 0xff, 0x9b};
    static const unsigned char protocols[] = {0x20, 1, 0}, examples[] = {0x20, 1, 0x0d, 0xb8};
    const unsigned char *a = address->s6_addr;
    if (is_v4(address) || memcmp(a, gateway, sizeof gateway) == 0)
        return is_public_v4(a + sizeof mapped);
    return a[0] >> 5 == 1 && !same_bits(a, protocols, 23) && !same_bits(a, examples, 32) &&
           !(a[0] == 0x20 && a[1] == 2) /* another way to write one of IPv4 */ &&
           !(a[0] == 0x3f && a[1] == 0xff);
}

/* ---- rules ---- */

static bool port_is(const struct outlet_rule *r, unsigned port)
{
    return r->port < 0 || (r->port == 0 ? port == 80 || port == 443 : r->port == (long)port);
}

static bool names_it(const struct outlet_rule *r, const char *host)
{
    size_t n = strlen(host), end = strlen(r->host);
    if (!r->below)
        return strcmp(host, r->host) == 0;
    return end == 0 || (n > end + 1 && host[n - end - 1] == '.' && strcmp(host + n - end, r->host) == 0);
}

static bool names_address(const struct outlet_rules *rules, const struct in6_addr *a, unsigned port)
{
    for (size_t i = 0; i < rules->n; i++) {
        const struct outlet_rule *r = &rules->list[i];
        if (r->bits > 0 && is_v4(&r->address) == is_v4(a) &&
            same_bits(r->address.s6_addr, a->s6_addr, r->bits) && port_is(r, port))
            return true;
    }
    return false;
}

bool outlet_names(const struct outlet_rules *rules, const char *host, unsigned port)
{
    struct in6_addr a;
    if (address_of(host, &a))
        return names_address(rules, &a, port);
    for (size_t i = 0; i < rules->n; i++)
        if (rules->list[i].bits == 0 && port_is(&rules->list[i], port) && names_it(&rules->list[i], host))
            return true;
    return false;
}

bool outlet_reaches(const void *arg, const struct sockaddr *at)
{
    const struct sockaddr_in6 *v6 = (const void *)at;
    struct in6_addr a;
    if (at->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)at;
        memcpy(&a, mapped, sizeof mapped);
        memcpy(a.s6_addr + sizeof mapped, &v4->sin_addr, 4);
    } else {
        a = v6->sin6_addr;
    }
    return is_public(&a) || names_address(arg, &a, ntohs(v6->sin6_port)); /* the port is where IPv4 has it */
}

/* The port behind a word, which is cut off. False: it is none. */
static bool take_port(char *word, long *port)
{
    char *first = strchr(word, ':'), *colon = strrchr(word, ':'), *bracket = strchr(word, ']');
    *port = 0;
    if (!colon || (bracket ? colon < bracket : first != colon))
        return true;
    *colon++ = '\0';
    *port = strcmp(colon, "*") == 0 ? -1 : (long)outlet_port(colon, strlen(colon));
    return *port != 0;
}

/* ADDRESS or ADDRESS/BITS, with or without brackets around the address. */
static bool take_address(char *word, struct outlet_rule *r)
{
    char *slash = strchr(word, '/'), *bracket = word[0] == '[' ? strchr(word, ']') : NULL;
    if (bracket) {
        if (bracket[1] != '\0' && bracket + 1 != slash)
            return false;
        *bracket = '\0';
        word++;
    }
    if (slash)
        *slash++ = '\0';
    if (!address_of(word, &r->address))
        return false;
    unsigned most = strchr(word, ':') ? 128 : 32;
    unsigned bits = slash ? outlet_port(slash, strlen(slash)) : most;
    r->bits = 128 - most + bits;
    return bits > 0 && bits <= most;
}

static bool take_rule(char *word, struct outlet_rule *r)
{
    *r = (struct outlet_rule){0};
    if (!take_port(word, &r->port))
        return false;
    r->below = word[0] == '*' && (word[1] == '.' || word[1] == '\0');
    if (r->below && word[1] == '\0')
        return true;
    if (!r->below && (strchr(word, '/') || strchr(word, ':')))
        return take_address(word, r);
    char *name = word + (r->below ? 2 : 0);
    if (!outlet_host(name, strlen(name), r->host))
        return false;
    if (!address_of(r->host, &r->address))
        return true;
    r->host[0] = '\0';
    r->bits = 128;
    return !r->below;
}

int outlet_rules_add(struct outlet_rules *rules, const char *words, struct err *err)
{
    for (const char *at = words;; at++) {
        size_t n = strcspn(at, ",");
        char *word MEM_AUTO = mem_dup(at, n);
        rules->list = mem_realloc(rules->list, (rules->n + 1) * sizeof *rules->list);
        if (!take_rule(word, &rules->list[rules->n]))
            return err_set(
                err, ERR_PARAMS,
                "'%.*s' is no name, *.NAME, address or ADDRESS/BITS, with or without :PORT (a name in "
                "another script is written as xn--…)",
                (int)n, at);
        rules->n++;
        at += n;
        if (!*at)
            return 0;
    }
}

void outlet_rules_release(struct outlet_rules *rules)
{
    free(rules->list);
    *rules = (struct outlet_rules){0};
}
