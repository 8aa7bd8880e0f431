/** The record of a control plane. It is written before each action, and is sufficient to continue after any crash. */
import { join } from 'node:path'
import { z } from 'zod'
import { ControlPlaneDesired } from '../../integrations/control-planes/control.ts'
import { readIfThere, writeDurably } from '../../kit/sys/durable-file.ts'

/** What every kind of host stores; each adds its own fields. */
export const PlaneRecord = z.object({
  desired: ControlPlaneDesired,
  /** The release that all API servers have reached; null before the first start. */
  release: z.string().nullable(),
  /** Number of restores; each generation has its own data. */
  generation: z.int().min(0),
  /** The restore in progress; `isWritten` once the next generation is complete and in use. */
  restore: z.object({ id: z.uuid(), snapshotId: z.uuid(), isWritten: z.boolean() }).nullable(),
  /** The last restore that ended. */
  restoreId: z.uuid().nullable(),
  isRemoved: z.boolean(),
  /** Add-ons that run beside it, with their settings; the token is in a separate file. */
  addons: z.record(z.string(), z.object({ tokenId: z.uuid(), clusterId: z.string(), zone: z.string() })).default({}),
})
export type PlaneRecord = z.infer<typeof PlaneRecord>

/** The record of a control plane that has not started yet. */
export const newPlaneRecord = (desired: ControlPlaneDesired): PlaneRecord => ({
  desired,
  release: null,
  generation: 0,
  restore: null,
  restoreId: null,
  isRemoved: false,
  addons: {},
})

const FILE = 'record.json'

/** Undefined when the folder has no record. Throws for an invalid file. */
export async function readRecordOf<OwnRecord>(
  folder: string,
  schema: z.ZodType<OwnRecord>,
): Promise<OwnRecord | undefined> {
  const text = await readIfThere(join(folder, FILE))
  return text === undefined ? undefined : schema.parse(JSON.parse(text))
}

export const writeRecord = (folder: string, record: PlaneRecord): Promise<void> =>
  writeDurably(join(folder, FILE), JSON.stringify(record))
