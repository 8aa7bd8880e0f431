/** A disk is read out of its backup while nothing of the platform runs: only the store and the key are there. */
import { mkdtemp, readdir, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { ALLOCATION } from '../../agents/node/backup/nbd.ts'
import { withServedDisk } from '../../agents/node/backup/served-disk.ts'
import { writeBackup } from '../../agents/node/backup/write-backup.ts'
import { runProgram } from '../../agents/node/run-program.ts'
import { openFolderStore } from '../../kit/chunks/folder-store.ts'
import type { ObjectStore } from '../../kit/chunks/object-store.ts'
import { openRepository } from '../../kit/chunks/repository.ts'
import { openS3Store } from '../../kit/chunks/s3-store.ts'
import { systemClock as clock } from '../../kit/sys/clock.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { startHostileS3 } from '../kit/chunks/hostile-s3.ts'
import { runLine } from './run-line.ts'

const KEY = Buffer.alloc(32, 3)
const GIBIBYTE = 1_073_741_824
let folder: string
const pathOf = (name: string) => join(folder, name)

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-offline-'))
  await writeFile(pathOf('key'), `${KEY.toString('hex')}\n`)
  await runProgram('qemu-img', ['create', '-q', '-f', 'qcow2', pathOf('disk'), '1G'])
  await runProgram('qemu-io', ['-c', 'write -P 1 5M 3M', '-c', 'write -P 2 1023M 1M', pathOf('disk')])
})
afterEach(() => rm(folder, { recursive: true }))

const backUp = (store: ObjectStore) =>
  withServedDisk({ folder, path: pathOf('disk'), clock }, async (disk) =>
    writeBackup({
      repository: openRepository({ store, key: KEY, clock, random: systemRandom }),
      point: {
        sizeBytes: disk.sizeBytes,
        read: (offset, length, place) => disk.read(offset, length, place),
        data: await disk.ranges(ALLOCATION),
      },
      backup: 'b1',
      origin: 's1',
      longestBackupSeconds: 3_600,
      clock,
    }),
  )
const restore = (from: string, environment: Readonly<Record<string, string>> = {}) =>
  runLine(['backup', 'restore-offline', 'b1', '--from', from, '--key-file', pathOf('key'), '--to', pathOf('raw')], {
    environment,
  })

it('from a folder: identical and sparse', async () => {
  await backUp(openFolderStore(pathOf('account')))
  expect(await restore(pathOf('account'))).toEqual({ code: 0, out: `${pathOf('raw')}: ${GIBIBYTE} bytes\n`, error: '' })
  const compared = await runProgram('qemu-img', ['compare', '-F', 'raw', pathOf('disk'), pathOf('raw')])
  expect(compared).toContain('Images are identical')
  expect((await stat(pathOf('raw'))).blocks * 512).toBeLessThan(16 * 1_048_576)
})

it('from a bucket, with the credentials of the environment', async () => {
  const server = await startHostileS3()
  try {
    const location = `${server.url}/account`
    const credentials = { accessKeyId: 'id', secretAccessKey: 'secret', region: 'us-east-1' }
    await backUp(openS3Store({ url: new URL(location), credentials, clock }))
    expect(await restore(location)).toMatchObject({ code: 4 })
    const environment = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret' }
    expect(await restore(location, environment)).toMatchObject({ code: 0 })
    const compared = await runProgram('qemu-img', ['compare', '-F', 'raw', pathOf('disk'), pathOf('raw')])
    expect(compared).toContain('Images are identical')
  } finally {
    await server.close()
  }
})

it('leaves no file that could be taken for the disk when a chunk is damaged', async () => {
  await backUp(openFolderStore(pathOf('account')))
  const [chunk = ''] = await readdir(pathOf('account/c'))
  await truncate(join(pathOf('account/c'), chunk), 100)
  const { code, error } = await restore(pathOf('account'))
  expect(code).toBe(1)
  expect(error).toContain(`c/${chunk}`)
  expect((await readdir(folder)).filter((name) => name.startsWith('raw'))).toEqual([])
})

it('says what is wrong with the command line, the key and the backup', async () => {
  await backUp(openFolderStore(pathOf('account')))
  expect(await runLine(['backup', 'restore-offline', 'b1'], {})).toMatchObject({ code: 4 })
  await writeFile(pathOf('raw'), 'precious')
  expect((await restore(pathOf('account'))).error).toContain('exists already')
  await rm(pathOf('raw'))
  expect((await restore(pathOf('elsewhere'))).error).toContain('m/b1 is missing')
  await writeFile(pathOf('key'), KEY.toString('base64'))
  expect((await restore(pathOf('account'))).error).toContain('64 digits')
  await writeFile(pathOf('key'), '00'.repeat(32))
  expect((await restore(pathOf('account'))).error).toContain('another key')
})
