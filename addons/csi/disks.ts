/** Disks of the node and their file systems. An empty disk gets a file system; anything else on a disk stays. */
import { open, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../kit/sys/clock.ts'
import type { FileSystem } from './capabilities.ts'
import { Refused } from './refusal.ts'
import { runProgram } from './run-program.ts'

const APPEARS_MILLISECONDS = 20_000
const LOOK_MILLISECONDS = 200
const SERIAL = /^[0-9a-f]{1,20}$/

/** The disk with that serial, which the guest may still be detecting. Throws when it does not appear. */
export async function findDisk(folder: string, serial: string, clock: Clock): Promise<string> {
  if (!SERIAL.test(serial)) throw new Refused('INVALID_ARGUMENT', 'publish_context has no serial')
  const until = clock.monotonicMilliseconds() + APPEARS_MILLISECONDS
  for (;;) {
    const path = await realpath(join(folder, `virtio-${serial}`)).catch(() => undefined)
    if (path !== undefined) return path
    if (clock.monotonicMilliseconds() > until)
      throw new Refused('FAILED_PRECONDITION', `the node has no disk with the serial ${serial}`)
    await clock.sleep(LOOK_MILLISECONDS)
  }
}

const PROBED_BYTES = 1024 * 1024
/** Exit statuses of blkid(8): found something, found nothing, found several things. */
const [FOUND, NOTHING, AMBIVALENT] = [0, 2, 8] as const

/** blkid's tags of the disk (TYPE, PTTYPE); undefined for an empty disk. Throws for a disk that cannot be read, because
 *  its content is unknown. */
async function contentsOf(disk: string): Promise<ReadonlyMap<string, string> | undefined> {
  const file = await open(disk, 'r')
  try {
    // blkid reports an unreadable disk as empty
    await file.read(Buffer.alloc(PROBED_BYTES), 0, PROBED_BYTES, 0)
  } finally {
    await file.close()
  }
  const options = ['--probe', '--match-tag', 'TYPE', '--match-tag', 'PTTYPE', '--output', 'export', disk]
  const { status, output } = await runProgram('blkid', options, [FOUND, NOTHING, AMBIVALENT])
  if (status === NOTHING) return undefined
  if (status === AMBIVALENT) throw new Refused('FAILED_PRECONDITION', 'the disk has several file systems')
  return new Map(
    output.split('\n').map((line) => {
      const [tag = '', ...value] = line.split('=')
      return [tag, value.join('=')]
    }),
  )
}

const MAKE: Readonly<Record<FileSystem, readonly string[]>> = {
  ext4: ['mkfs.ext4', '-q', '-m', '0'],
  xfs: ['mkfs.xfs', '-q'],
}

/** Ensures that the disk has this file system without errors; creates it on an empty disk. Throws when the disk
 *  contains something else. */
export async function ensureFileSystem(disk: string, wanted: FileSystem): Promise<void> {
  const contents = await contentsOf(disk)
  if (contents === undefined) {
    const [program = '', ...options] = MAKE[wanted]
    await runProgram(program, [...options, disk])
    return
  }
  const type = contents.get('TYPE')
  if (type === undefined) throw new Refused('FAILED_PRECONDITION', 'the disk has partitions')
  if (type !== wanted) throw new Refused('FAILED_PRECONDITION', `the disk has ${type}, not ${wanted}`)
  // 1: errors were corrected; xfs repairs itself when it is mounted
  if (type === 'ext4') await runProgram('e2fsck', ['-p', disk], [0, 1])
}

export async function mountDisk(
  disk: string,
  path: string,
  { type, flags }: { readonly type: FileSystem; readonly flags: readonly string[] },
): Promise<void> {
  // a copy of a volume has the same UUID, and may be on the same node
  const options = [...flags, ...(type === 'xfs' ? ['nouuid'] : [])]
  await runProgram('mount', ['-t', type, ...(options.length === 0 ? [] : ['-o', options.join(',')]), disk, path])
}

/** Grows the file system to the size of its disk. Does nothing when it has that size. */
export async function growFileSystem(disk: string, path: string, type: string): Promise<void> {
  if (type === 'ext4') await runProgram('resize2fs', [disk])
  else if (type === 'xfs') await runProgram('xfs_growfs', [path])
  else throw new Refused('FAILED_PRECONDITION', `${path} has ${type}, which does not grow`)
}

export const diskBytes = async (disk: string): Promise<number> =>
  Number((await runProgram('blockdev', ['--getsize64', disk])).output.trim())
