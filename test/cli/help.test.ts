/** The reference in the documentation is what the commands say of themselves. */
import { readFile, writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { reference } from '../../cli/help.ts'
import { COMMANDS } from '../../cli/session.ts'
import { environment } from '../../kit/sys/process.ts'

const file = new URL('../../docs/cli-reference.md', import.meta.url)

test('the command reference is up to date; UPDATE=1 writes it again', async () => {
  if (environment()['UPDATE'] === '1') await writeFile(file, reference(COMMANDS))
  expect(await readFile(file, 'utf8')).toBe(reference(COMMANDS))
})
