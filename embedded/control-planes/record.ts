/** What is remembered of a control plane: written before anything is done about it, and enough to go on after any
 *  end. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { ControlPlaneDesired } from '../../kit/control-planes/control.ts'
import { writeDurably } from '../../kit/sys/durable-file.ts'

const Port = z.int().min(1).max(65_535)
/** Of one etcd member and one API server. */
const ReplicaPorts = z.object({ etcdClient: Port, etcdPeer: Port, api: Port })
export type ReplicaPorts = z.infer<typeof ReplicaPorts>

export const ControlPlaneRecord = z.object({
  desired: ControlPlaneDesired,
  /** Of the balancer in front. */
  endpointPort: Port,
  replicas: z.array(ReplicaPorts).min(1),
  /** Of the tunnel to nodes: where their agents come in, and two doors that nobody needs; null without one. */
  tunnel: z.object({ agents: Port, admin: Port, health: Port }).nullable().default(null),
  /** Ports by which nodes reach the balancer and the tunnel, where they are others than those of this machine. */
  nodePorts: z.object({ endpoint: Port, tunnel: Port }).nullable().default(null),
  /** Every API server has been on it; null before the first start. */
  release: z.string().nullable(),
  /** Counts restores: each has folders of its own. */
  generation: z.int().min(0),
  /** Under way; `isWritten` once the next generation is whole and in use. */
  restore: z.object({ id: z.uuid(), snapshotId: z.uuid(), isWritten: z.boolean() }).nullable(),
  /** The last restore that ended. */
  restoreId: z.uuid().nullable(),
  isRemoved: z.boolean(),
})
export type ControlPlaneRecord = z.infer<typeof ControlPlaneRecord>

const FILE = 'record.json'

/** Undefined where nothing was ever recorded. Throws for a file that is no record. */
export async function readRecord(folder: string): Promise<ControlPlaneRecord | undefined> {
  const text = await readFile(join(folder, FILE), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  return text === undefined ? undefined : ControlPlaneRecord.parse(JSON.parse(text))
}

export const writeRecord = (folder: string, record: ControlPlaneRecord): Promise<void> =>
  writeDurably(join(folder, FILE), JSON.stringify(record))
