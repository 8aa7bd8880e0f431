/** The only output to the user: all text is made printable, whoever wrote it. Colours and the overwritten line are this
 *  program's own. */
import { printable } from '../domain/printable.ts'
import type { Terminal } from '../kit/sys/terminal.ts'
import { CLEAR_LINE } from './progress.ts'

/** Styles of this program: bold, red, and their end. */
const STYLES = new RegExp(String.raw`(\u001b\[(?:0|1|31)m)`)
const styled = (text: string): string =>
  text
    .split(STYLES)
    .map((part, index) => (index % 2 === 1 ? part : printable(part)))
    .join('')

/** Bytes come from a console, which is a terminal itself: they are written unchanged. */
export const screenOn = (terminal: Terminal): Terminal => ({
  ...terminal,
  write: (bytes) => terminal.write(typeof bytes === 'string' ? styled(bytes) : bytes),
  writeError(text) {
    const clear = [CLEAR_LINE, '\r'].find((each) => text.startsWith(each) && !text.startsWith('\r\n')) ?? ''
    terminal.writeError(clear + styled(text.slice(clear.length)))
  },
  ask: (question, isHidden) => terminal.ask(printable(question), isHidden),
})
