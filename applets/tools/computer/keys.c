#include "keys.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "utf8.h"

#define UNICODE 0x1000000u

/* Names and what they stand for, in hexadecimal, with blanks between. First the names that models use for
 * others. */
static const char names[] =
    "enter ff0d esc ff1b pageup ff55 page_up ff55 pagedown ff56 page_down ff56 arrowleft ff51 arrowup ff52 "
    "arrowright ff53 "
    "arrowdown ff54 printscreen ff61 prtscr ff61 ctl ffe3 ctrl ffe3 control ffe3 cmd ffeb command ffeb win "
    "ffeb "
    "windows ffeb super ffeb meta ffe7 alt ffe9 opt ffe9 option ffe9 shift ffe1 altgr fe03 del ffff ins ff63 "
    "capslock ffe5 "
    "numlock ff7f scrolllock ff14 backspace ff08 spacebar 20 "
    "BackSpace ff08 Tab ff09 Linefeed ff0a Clear ff0b Return ff0d Pause ff13 Scroll_Lock ff14 Sys_Req ff15 "
    "Escape ff1b "
    "Multi_key ff20 Home ff50 Left ff51 Up ff52 Right ff53 Down ff54 Prior ff55 Page_Up ff55 Next ff56 "
    "Page_Down ff56 End ff57 "
    "Begin ff58 Select ff60 Print ff61 Execute ff62 Insert ff63 Undo ff65 Redo ff66 Menu ff67 Find ff68 "
    "Cancel ff69 Help ff6a "
    "Break ff6b Mode_switch ff7e Num_Lock ff7f Delete ffff ISO_Left_Tab fe20 ISO_Level3_Shift fe03 "
    "KP_Space ff80 KP_Tab ff89 KP_Enter ff8d KP_Home ff95 KP_Left ff96 KP_Up ff97 KP_Right ff98 KP_Down ff99 "
    "KP_Prior ff9a "
    "KP_Page_Up ff9a KP_Next ff9b KP_Page_Down ff9b KP_End ff9c KP_Begin ff9d KP_Insert ff9e KP_Delete ff9f "
    "KP_Equal ffbd "
    "KP_Multiply ffaa KP_Add ffab KP_Separator ffac KP_Subtract ffad KP_Decimal ffae KP_Divide ffaf "
    "Shift_L ffe1 Shift_R ffe2 Control_L ffe3 Control_R ffe4 Caps_Lock ffe5 Shift_Lock ffe6 Meta_L ffe7 "
    "Meta_R ffe8 Alt_L ffe9 "
    "Alt_R ffea Super_L ffeb Super_R ffec Hyper_L ffed Hyper_R ffee "
    "dead_grave fe50 dead_acute fe51 dead_circumflex fe52 dead_tilde fe53 dead_diaeresis fe57 dead_cedilla "
    "fe5b "
    "space 20 exclam 21 quotedbl 22 numbersign 23 dollar 24 percent 25 ampersand 26 apostrophe 27 quoteright "
    "27 parenleft 28 "
    "parenright 29 asterisk 2a plus 2b comma 2c minus 2d period 2e slash 2f colon 3a semicolon 3b less 3c "
    "equal 3d greater 3e "
    "question 3f at 40 bracketleft 5b backslash 5c bracketright 5d asciicircum 5e underscore 5f grave 60 "
    "quoteleft 60 braceleft 7b "
    "bar 7c braceright 7d asciitilde 7e nobreakspace a0 exclamdown a1 sterling a3 section a7 degree b0 mu b5 "
    "questiondown bf "
    "Adiaeresis c4 Odiaeresis d6 Udiaeresis dc ssharp df agrave e0 adiaeresis e4 ccedilla e7 egrave e8 "
    "eacute e9 ntilde f1 "
    "odiaeresis f6 udiaeresis fc EuroSign 20ac "
    "XF86MonBrightnessUp 1008ff02 XF86MonBrightnessDown 1008ff03 XF86AudioLowerVolume 1008ff11 XF86AudioMute "
    "1008ff12 "
    "XF86AudioRaiseVolume 1008ff13 XF86AudioPlay 1008ff14 XF86AudioStop 1008ff15 XF86AudioPrev 1008ff16 "
    "XF86AudioNext 1008ff17 "
    "XF86HomePage 1008ff18 XF86Search 1008ff1b XF86Back 1008ff26 XF86Forward 1008ff27 XF86Refresh 1008ff29 ";

static uint32_t look_up(const char *name, size_t n, int (*compare)(const char *, const char *, size_t))
{
    for (const char *at = names, *number; *at; at = strchr(number, ' ') + 1) {
        number = strchr(at, ' ') + 1;
        if ((size_t)(number - at) == n + 1 && compare(at, name, n) == 0)
            return (uint32_t)strtoul(number, NULL, 16);
    }
    return 0;
}

static uint32_t number_of(const char *s, size_t n, int base, uint32_t max)
{
    char text[12], *end;
    if (n == 0 || n >= sizeof text || strspn(s, "0123456789abcdefABCDEF") < n)
        return 0;
    memcpy(text, s, n);
    text[n] = 0;
    unsigned long v = strtoul(text, &end, base);
    return *end || v > max ? 0 : (uint32_t)v;
}

uint32_t key_of_character(unsigned c)
{
    switch (c) {
    case '\n':
    case '\r':
        return 0xff0d;
    case '\t':
    case '\b':
    case 0x1b:
        return 0xff00 | c;
    case 0x7f:
        return 0xffff;
    default:
        return c < 0x20 || (c >= 0x80 && c < 0xa0) ? 0 : c <= 0xff ? c : UNICODE | c;
    }
}

/* Russian letters have numbers of their own, in the order of an old code. */
unsigned key_character(uint32_t s)
{
    static const unsigned char order[] = {30, 0,  1,  22, 4,  5,  20, 3, 21, 8,  9, 10, 11, 12, 13, 14,
                                          15, 31, 16, 17, 18, 19, 6,  2, 28, 27, 7, 24, 29, 25, 23, 26};
    if (s >= 0x6c0 && s <= 0x6ff)
        return (s < 0x6e0 ? 0x430u : 0x410u) + order[s & 31];
    if (s == 0x6a3 || s == 0x6b3)
        return s == 0x6a3 ? 0x451 : 0x401;
    if (s == 0x20ac)
        return s;
    return s > UNICODE && s <= UNICODE + 0x10ffff                 ? s - UNICODE
           : (s >= 0x20 && s <= 0x7e) || (s >= 0xa0 && s <= 0xff) ? s
                                                                  : 0;
}

uint32_t key_symbol(const char *name, size_t n)
{
    int length = n > 0 ? utf8_char(name, n) : 0;
    if (length > 0 && (size_t)length == n)
        return key_of_character(utf8_code_point(name, length));
    uint32_t found = look_up(name, n, strncmp);
    if (!found)
        found = look_up(name, n, strncasecmp);
    if (!found && n > 3 && strncasecmp(name, "KP_", 3) == 0 &&
        (found = number_of(name + 3, n - 3, 10, 9) + 0xffb0) == 0xffb0)
        found = n == 4 && name[3] == '0' ? 0xffb0 : 0;
    if (!found && (*name == 'F' || *name == 'f') && (found = number_of(name + 1, n - 1, 10, 35)) > 0)
        found += 0xffbd;
    if (!found && *name == 'U' && n > 4 && (found = number_of(name + 1, n - 1, 16, 0x10ffff)) > 0)
        found = key_of_character(found);
    if (!found && n > 2 && strncmp(name, "0x", 2) == 0)
        found = number_of(name + 2, n - 2, 16, 0x1fffffff);
    return found;
}
