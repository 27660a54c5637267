/* toolbox --install-legacy ROOT: the entry points that older clients run in their images, as a few lines that
 * call toolbox. docs/compatibility.md lists them. */
#ifndef APPLETS_INSTALL_LEGACY_H
#define APPLETS_INSTALL_LEGACY_H

/* Writes them below `root`, with what folders they need; files that aren't of this kind are left alone and
 * make it fail. Returns the exit status, having said what went wrong. */
int install_legacy(const char *root);

#endif
