/** The record of a control plane in processes of this machine. */
import { z } from 'zod'
import { PlaneRecord, readRecordOf } from '../core/record.ts'

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
})
export type ControlPlaneRecord = z.infer<typeof ControlPlaneRecord>

/** All ports of its programs on this machine. */
export const portsOf = ({ endpointPort, replicas, tunnel }: ControlPlaneRecord): readonly number[] => [
  endpointPort,
  ...replicas.flatMap((replica) => Object.values(replica)),
  ...Object.values(tunnel ?? {}),
]

export const readRecord = (folder: string): Promise<ControlPlaneRecord | undefined> =>
  readRecordOf(folder, ControlPlaneRecord)
