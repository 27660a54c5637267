/** `Symbol.asyncDispose` for the first versions of Node.js 20, which don't have it: as TypeScript and later ones look for it. */

const symbols = Symbol as { asyncDispose?: symbol; dispose?: symbol };
symbols.asyncDispose ??= Symbol.for("nodejs.asyncDispose");
symbols.dispose ??= Symbol.for("nodejs.dispose");
