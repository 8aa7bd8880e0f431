import { createHash } from 'node:crypto'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { TooLong } from '../../../kit/http/bounded.ts'
import { takeSnapshot, verifySum } from '../../../hosting/core/snapshots.ts'

test('a snapshot that was cut or changed is none, by the sum that etcd appends', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-sum-'))
  try {
    const content = Buffer.from('what etcd holds')
    const whole = Buffer.concat([content, createHash('sha256').update(content).digest()])
    const judge = async (bytes: Uint8Array) => {
      const file = join(folder, 'snapshot.db')
      await writeFile(file, bytes)
      return verifySum(file)
    }
    await judge(whole)
    await expect(judge(whole.subarray(0, -1))).rejects.toThrow('not whole')
    await expect(judge(Buffer.concat([Buffer.from('x'), whole.subarray(1)]))).rejects.toThrow('not whole')
    await expect(judge(Buffer.alloc(0))).rejects.toThrow('empty')
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

test('a snapshot that is larger than etcd may be is not taken, and nothing of it stays', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-sum-'))
  const endless = async function* () {
    yield Buffer.from('what etcd holds')
    yield { length: 3 * 1024 ** 3 } as Uint8Array // of which only the length is looked at
  }
  try {
    const taken = takeSnapshot({ folder, id: 'one', etcdutl: undefined, parts: endless() })
    await expect(taken).rejects.toBeInstanceOf(TooLong)
    expect(await readdir(folder)).toEqual([])
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
