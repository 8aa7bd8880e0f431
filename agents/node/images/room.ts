/** Free space on the file system that holds images. Writes of images keep a reserve, so that disks of guests on the
 *  same file system do not run out of space. */
import { statfs } from 'node:fs/promises'
import { Unavailable } from '../../../domain/problem.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import { freeBytes } from '../../../kit/sys/disk-space.ts'

export interface Room {
  /** A folder on the file system. */
  readonly folder: string
  readonly clock: Clock
  /** Bytes that stay free; the default is `reserveOf` the file system. */
  readonly reserveBytes?: number | undefined
}

const GIBIBYTE = 1024 ** 3
const RESERVE_SHARE = 0.05
const RESERVE_BYTES_MAXIMUM = 10 * GIBIBYTE
const LOOK_MILLISECONDS = 2_000

/** The host has not enough space now. */
export class NoRoom extends Unavailable {
  constructor() {
    super('room on the host for the image')
    this.name = 'NoRoom'
  }
}

/** 5 % of the file system, 10 GiB at most. */
export async function reserveOf(folder: string): Promise<number> {
  const { blocks, bsize } = await statfs(folder)
  return Math.min(blocks * bsize * RESERVE_SHARE, RESERVE_BYTES_MAXIMUM)
}

/** Throws NoRoom when writing this many bytes would use the reserve. */
export async function requireRoom({ folder, reserveBytes }: Room, bytes: number): Promise<void> {
  const reserve = reserveBytes ?? (await reserveOf(folder))
  if ((await freeBytes(folder)) - bytes < reserve) throw new NoRoom()
}

/** Does the work as long as the reserve is free. Otherwise aborts it, and throws NoRoom when it has ended. */
export async function whileRoom<Result>(
  room: Room,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  await requireRoom(room, 0)
  const [full, over] = [new AbortController(), new AbortController()]
  const watching = watchRoom(room, full, over.signal)
  try {
    return await work(signal === undefined ? full.signal : AbortSignal.any([signal, full.signal]))
  } catch (error) {
    if (full.signal.aborted && signal?.aborted !== true) throw full.signal.reason
    throw error
  } finally {
    over.abort()
    await watching
  }
}

async function watchRoom(room: Room, full: AbortController, over: AbortSignal): Promise<void> {
  while (!over.aborted && !full.signal.aborted) {
    await room.clock.sleep(LOOK_MILLISECONDS, over).catch(() => {})
    if (!over.aborted) await requireRoom(room, 0).catch((error: unknown) => full.abort(error))
  }
}
