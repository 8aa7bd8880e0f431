/** The record of a control plane in pods. It is written before each action, and is sufficient to continue after any
 *  crash. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { defined } from '../../domain/defined.ts'
import type { ControlPlaneDesired } from '../../integrations/control-planes/control.ts'
import { PlaneRecord } from '../core/planes.ts'
import { writeDurably } from '../../kit/sys/durable-file.ts'
import type { HostSettings } from './settings.ts'

export const PodsRecord = PlaneRecord.extend({
  /** The values at its creation: volumes do not change with settings. */
  storage: z.object({ className: z.string().optional(), mebibytes: z.int() }),
  /** The node port that clients knew before it was lost; null for any. */
  nodePort: z.int().nullable(),
  /** Number of replacements of its reader; each changes the reader's manifest. */
  readers: z.int().default(0),
  /** Add-ons that run beside it, with their settings; the token is in a separate file. */
  addons: z.record(z.string(), z.object({ tokenId: z.uuid(), clusterId: z.string(), zone: z.string() })).default({}),
})
export type PodsRecord = z.infer<typeof PodsRecord>

const FILE = 'record.json'

/** Undefined when there is no record. Throws for an invalid file. */
export async function readRecord(folder: string): Promise<PodsRecord | undefined> {
  const text = await readFile(join(folder, FILE), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  return text === undefined ? undefined : PodsRecord.parse(JSON.parse(text))
}

export const writeRecord = (folder: string, record: PodsRecord): Promise<void> =>
  writeDurably(join(folder, FILE), JSON.stringify(record))

export const newRecord = (
  desired: ControlPlaneDesired,
  { storage: { className, mebibytesOfOne } }: HostSettings,
  nodePort: number | null,
): PodsRecord => ({
  desired,
  release: null,
  generation: 0,
  restore: null,
  restoreId: null,
  isRemoved: false,
  nodePort,
  readers: 0,
  addons: {},
  storage: { ...defined({ className }), mebibytes: mebibytesOfOne },
})
