/** Flag values from files: `--public-key @id.pub`. */
import { readFile } from 'node:fs/promises'
import type { Split } from './arguments.ts'
import type { Flag } from './commands.ts'
import { usageFailure } from './exit.ts'

/** Neither a key nor a script looks like this. */
const PATH = /^(~|\.{0,2})\/\S*$|^\S+\.(pub|sh|ya?ml|pem|crt|key)$/

/** The flags with the content of the files that they name. Throws a Failure for an unreadable file, and for a path
 *  where content is required. */
export async function withFiles(flags: readonly Flag[], own: Split['own']): Promise<Split['own']> {
  const read = new Map(own)
  for (const { flag, isFromFile } of flags) {
    const values = own.get(flag)
    if (isFromFile && values !== undefined)
      read.set(flag, await Promise.all(values.map((value) => fileValue(flag, value ?? ''))))
  }
  return read
}

async function fileValue(flag: string, value: string): Promise<string> {
  if (value.startsWith('@'))
    return readFile(value.slice(1), 'utf8').catch((error: Error) => {
      throw usageFailure(`${value.slice(1)} cannot be read: ${error.message}`)
    })
  if (PATH.test(value))
    throw usageFailure(`--${flag} needs the content of the file: use --${flag} @${value} to read it`)
  return value
}
