/** `--help` of scripts: the help of a script is the comment at its head, so that it is written once. */
import { readFileSync } from 'node:fs'
import { exitProcess, printLine, processArguments } from './process.ts'

/** Prints the help and ends the process with 0, where the command line asks for it. `file` is the path of the script,
 *  `text` replaces its head. */
export function answerHelp(file: string, text = headOf(file)): void {
  if (!processArguments().some((word) => word === '--help' || word === '-h')) return
  printLine(text)
  exitProcess(0)
}

/** The text of the comment that the file starts with. */
function headOf(file: string): string {
  const [, comment = ''] = /^\/\*\*([\s\S]*?)\*\//.exec(readFileSync(file, 'utf8')) ?? []
  return comment
    .split('\n')
    .map((line) => line.replace(/^ \*(?: {2})?/, ''))
    .join('\n')
    .trim()
}
