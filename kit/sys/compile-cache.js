/** What Node compiled is kept in the checkout, so that the command and every process of the platform start in half the
 *  time. Not where Node would keep it by default: that folder is everybody's. Plain JavaScript, so that every Node can
 *  read it. */
import module from 'node:module'
import { fileURLToPath } from 'node:url'

/** The folder; it goes with the packages that `npm ci` installs. */
export const COMPILE_CACHE = fileURLToPath(new URL('../../node_modules/.cache/compiled', import.meta.url))

/** For this process and those that it starts, unless whoever started it has said where. Who may not write there reads
 *  what others have kept. */
export function keepCompiled() {
  process.env.NODE_COMPILE_CACHE ??= COMPILE_CACHE
  module.enableCompileCache?.(process.env.NODE_COMPILE_CACHE)
}
