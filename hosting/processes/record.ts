/** What is remembered of a control plane: written before anything is done about it, and enough to go on after any
 *  end. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { PlaneRecord } from '../core/planes.ts'
import { writeDurably } from '../../kit/sys/durable-file.ts'

const Port = z.int().min(1).max(65_535)
/** Of one etcd member and one API server. */
const ReplicaPorts = z.object({ etcdClient: Port, etcdPeer: Port, api: Port })
export type ReplicaPorts = z.infer<typeof ReplicaPorts>

export const ControlPlaneRecord = PlaneRecord.extend({
  /** Of the balancer in front. */
  endpointPort: Port,
  replicas: z.array(ReplicaPorts).min(1),
  /** Of the tunnel to nodes: where their agents come in, and two listeners that nobody needs; null without one. */
  tunnel: z.object({ agents: Port, admin: Port, health: Port }).nullable().default(null),
  /** Ports by which nodes reach the balancer and the tunnel, where they are others than those of this machine. */
  nodePorts: z.object({ endpoint: Port, tunnel: Port }).nullable().default(null),
  /** Which of the users of this host its programs run as; null for one that has none yet. */
  user: z.int().min(0).nullable().default(null),
  /** Add-ons that run beside it, with what they were told; the token itself is in a file of its own. */
  addons: z.record(z.string(), z.object({ tokenId: z.uuid(), clusterId: z.string(), zone: z.string() })).default({}),
})
export type ControlPlaneRecord = z.infer<typeof ControlPlaneRecord>

/** All that its programs listen on, on this machine. */
export const portsOf = ({ endpointPort, replicas, tunnel }: ControlPlaneRecord): readonly number[] => [
  endpointPort,
  ...replicas.flatMap((replica) => Object.values(replica)),
  ...Object.values(tunnel ?? {}),
]

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
