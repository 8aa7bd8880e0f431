/** The record of a QEMU guest, written before its process starts, and the search for that process. */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { isUuid } from '../../../../domain/uuid.ts'
import { writeDurably } from '../../../../kit/sys/durable-file.ts'
import { GUEST_AGENT_FILES } from '../../guest-agent/freeze.ts'
import { processArgumentsOf, processFolderOf } from '../../host.ts'
import { GUEST_FILES } from './qemu-arguments.ts'
import { USER_MODE_FILES } from '../network/user-mode.ts'
import { GuestUser } from './guest-users.ts'
import { KEY_FILE, Move } from './qemu-migration.ts'

const RECORD_FILE = 'guest.json'

export const GuestRecord = z.strictObject({
  name: z.string(),
  uid: z.string(),
  incarnation: z.int(),
  uuid: z.string(),
  startedAt: z.string(),
  /** Process ids of an earlier boot of the host are invalid. */
  bootId: z.string(),
  forwards: z.array(z.strictObject({ guestPort: z.int(), host: z.string(), hostPort: z.int() })),
  /** First the interfaces that it started with, in order, then those that were plugged in. Without a port name, the
   *  port has the guest's name. */
  interfaces: z.array(
    z.strictObject({
      macAddress: z.string(),
      portName: z.string().optional(),
      slot: z.int().optional(),
      isLeaving: z.literal(true).optional(),
    }),
  ),
  /** Paths of the disks that it was started with. */
  disks: z.array(z.string()).default([]),
  /** User that it runs as; absent when it runs as the agent. */
  user: GuestUser.optional(),
  /** The last attempt to move it to this host or away. */
  move: Move.optional(),
})
export type GuestRecord = z.infer<typeof GuestRecord>

/** Undefined when there is none. Throws for one in an unknown format. */
export async function readGuestRecord(folder: string): Promise<GuestRecord | undefined> {
  const text = await readFile(join(folder, RECORD_FILE), 'utf8').catch(() => undefined)
  return text === undefined ? undefined : GuestRecord.parse(withInterfaces(JSON.parse(text)))
}
/** Agents of earlier versions recorded only the hardware addresses. */
function withInterfaces(record: unknown): unknown {
  const { data: earlier } = EarlierRecord.safeParse(record)
  if (earlier === undefined) return record
  const { macAddresses, ...rest } = earlier
  return { ...rest, interfaces: macAddresses.map((macAddress) => ({ macAddress })) }
}
const EarlierRecord = z.looseObject({ macAddresses: z.array(z.string()) })

export const writeGuestRecord = (folder: string, record: GuestRecord): Promise<void> =>
  writeDurably(join(folder, RECORD_FILE), JSON.stringify(record))
/** Files of one incarnation. The record is deleted last, so that a guest whose removal was interrupted counts as gone.
 */
export const INCARNATION_FILES = [
  GUEST_FILES.qmp,
  GUEST_FILES.consoleInput,
  GUEST_FILES.pid,
  GUEST_FILES.seed,
  GUEST_FILES.output,
  KEY_FILE,
  ...Object.values(GUEST_AGENT_FILES),
  ...USER_MODE_FILES,
  RECORD_FILE,
]

/** The machine id of a guest: its name where that is a UUID, otherwise derived from it. */
export function guestUuid(name: string): string {
  if (isUuid(name)) return name
  const hex = createHash('sha256').update(name).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** The running process of the guest in this folder (a real path), identified by its command line and working directory.
 *  The pidfile only speeds up the search. */
export async function findGuestProcess(folder: string, uuid: string): Promise<number | undefined> {
  const noted = Number((await readFile(join(folder, GUEST_FILES.pid), 'utf8').catch(() => '')).trim())
  if (noted > 0 && (await isGuestProcess(noted, folder, uuid))) return noted
  for (const entry of await readdir('/proc')) {
    if (/^\d+$/.test(entry) && (await isGuestProcess(Number(entry), folder, uuid))) return Number(entry)
  }
  return undefined
}

/** Compares command line and working directory, because a process id may have been reused. */
export async function isGuestProcess(pid: number, folder: string, uuid: string): Promise<boolean> {
  const commandLine = await processArgumentsOf(pid)
  return (
    commandLine !== undefined &&
    commandLine[commandLine.indexOf('-uuid') + 1] === uuid &&
    (await processFolderOf(pid)) === folder
  )
}
