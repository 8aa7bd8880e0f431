import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { verifySum } from '../../../../kit/control-planes/hosting/snapshots.ts'

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
