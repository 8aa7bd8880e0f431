/** The record of a control plane. It is written before each action, and is sufficient to continue after any crash. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { PlaneRecord } from '../core/planes.ts'
import { writeDurably } from '../../kit/sys/durable-file.ts'

const Port = z.int().min(1).max(65_535)
/** Ports of one etcd member and one API server. */
const ReplicaPorts = z.object({ etcdClient: Port, etcdPeer: Port, api: Port })
export type ReplicaPorts = z.infer<typeof ReplicaPorts>

export const ControlPlaneRecord = PlaneRecord.extend({
  /** Port of the balancer in front. */
  endpointPort: Port,
  replicas: z.array(ReplicaPorts).min(1),
  /** Ports of the tunnel to nodes: for the nodes' agents, and two listeners that are not used; null without a tunnel.
   */
  tunnel: z.object({ agents: Port, admin: Port, health: Port }).nullable().default(null),
  /** Ports at which nodes reach the balancer and the tunnel, if they differ from those of this machine. */
  nodePorts: z.object({ endpoint: Port, tunnel: Port }).nullable().default(null),
  /** Number of the host's user for its programs; null when it has none yet. */
  user: z.int().min(0).nullable().default(null),
  /** Add-ons that run beside it, with their settings; the token is in a separate file. */
  addons: z.record(z.string(), z.object({ tokenId: z.uuid(), clusterId: z.string(), zone: z.string() })).default({}),
})
export type ControlPlaneRecord = z.infer<typeof ControlPlaneRecord>

/** All ports of its programs on this machine. */
export const portsOf = ({ endpointPort, replicas, tunnel }: ControlPlaneRecord): readonly number[] => [
  endpointPort,
  ...replicas.flatMap((replica) => Object.values(replica)),
  ...Object.values(tunnel ?? {}),
]

const FILE = 'record.json'

/** Undefined when there is no record. Throws for an invalid file. */
export async function readRecord(folder: string): Promise<ControlPlaneRecord | undefined> {
  const text = await readFile(join(folder, FILE), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  return text === undefined ? undefined : ControlPlaneRecord.parse(JSON.parse(text))
}

export const writeRecord = (folder: string, record: ControlPlaneRecord): Promise<void> =>
  writeDurably(join(folder, FILE), JSON.stringify(record))
