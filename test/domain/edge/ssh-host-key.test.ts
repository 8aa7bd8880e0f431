import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { hostKeyOf } from '../../../domain/edge/ssh-host-key.ts'
import { parsePublicKey } from '../../../domain/ssh-key/rules.ts'
import { runProgram } from '../../../agents/node/run-program.ts'

const seed = (byte: number) => Buffer.alloc(32, byte)

it('is what OpenSSH reads, the same for the same bytes and another for others', async () => {
  const key = hostKeyOf(seed(7))
  const folder = await mkdtemp(join(tmpdir(), 'host-key-'))
  try {
    await writeFile(join(folder, 'key'), key.privateKey, { mode: 0o600 })
    expect((await runProgram('ssh-keygen', ['-y', '-P', '', '-f', join(folder, 'key')])).trim()).toBe(key.publicKey)
  } finally {
    await rm(folder, { recursive: true })
  }
  expect(parsePublicKey(key.publicKey)).toMatchObject({ text: key.publicKey })
  expect(hostKeyOf(seed(7))).toEqual(key)
  expect(hostKeyOf(seed(8)).publicKey).not.toBe(key.publicKey)
})

it('is made from enough bytes only', () => {
  expect(() => hostKeyOf(Buffer.alloc(31))).toThrow('32 bytes')
})
