/** Progress output of a waiting command: on a terminal one line that is overwritten, otherwise each state once. */
import { printable } from '../domain/printable.ts'
import type { Terminal } from '../kit/sys/terminal.ts'

export const CLEAR_LINE = '\r\u001b[K'

export interface Progress {
  show(text: string): void
  /** Clears the line. */
  end(): void
}

export function progressOn(terminal: Pick<Terminal, 'isErrorTerminal' | 'writeError'>): Progress {
  const isLive = terminal.isErrorTerminal
  let shown = ''
  return {
    show(line) {
      const text = printable(line)
      if (text === shown) return
      shown = text
      terminal.writeError(isLive ? `${CLEAR_LINE}${text} …` : `${text} …\n`)
    },
    end() {
      if (isLive && shown !== '') terminal.writeError(CLEAR_LINE)
      shown = ''
    },
  }
}
