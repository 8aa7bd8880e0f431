/** The calls of the platform to a host of control planes: `POST /calls/NAME`, with the arguments as a JSON array. Both
 *  sides use this table. */
import { z } from 'zod'
import {
  AddonGrant,
  AgentObjects,
  BootstrapTokenId,
  ClusterRole,
  Person,
  ControlPlaneDesired,
  ControlPlaneNode,
  ControlPlaneOffer,
  ControlPlaneSnapshot,
  ControlPlaneState,
  ControlPlaneToken,
  type ControlPlanes,
  NodeMarks,
  ServingRequest,
  SnapshotPlace,
} from './control.ts'
import { ClusterLoad } from './load.ts'

const Id = z.uuid()
/** Name of a node or pool: one or several parts of a DNS name. */
const Name = z.string().regex(/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/)
const Port = z.int().min(1).max(65_535)
const Seconds = z.int().min(60).max(31_536_000)

export const CALLS = {
  offer: { takes: z.tuple([]), answers: ControlPlaneOffer },
  ensure: { takes: z.tuple([ControlPlaneDesired]), answers: ControlPlaneState },
  get: { takes: z.tuple([Id]), answers: ControlPlaneState.optional() },
  remove: { takes: z.tuple([Id]), answers: z.boolean() },
  snapshot: { takes: z.tuple([Id, Id]), answers: ControlPlaneSnapshot },
  snapshots: { takes: z.tuple([Id]), answers: z.array(ControlPlaneSnapshot) },
  keepSnapshotsIn: { takes: z.tuple([Id, SnapshotPlace]), answers: z.undefined() },
  removeSnapshot: { takes: z.tuple([Id, Id]), answers: z.undefined() },
  restore: { takes: z.tuple([Id, Id, Id]), answers: ControlPlaneState },
  grant: { takes: z.tuple([Id, Name, AddonGrant]), answers: z.undefined() },
  recover: {
    takes: z.tuple([ControlPlaneDesired, SnapshotPlace, Id, Id, Port.nullable()]),
    answers: ControlPlaneState,
  },
  nodes: { takes: z.tuple([Id]), answers: z.array(ControlPlaneNode) },
  userToken: { takes: z.tuple([Id, ClusterRole, Seconds]), answers: ControlPlaneToken },
  personToken: { takes: z.tuple([Id, Person, Seconds]), answers: ControlPlaneToken },
  removePerson: { takes: z.tuple([Id, Person]), answers: z.undefined() },
  joinToken: { takes: z.tuple([Id, BootstrapTokenId, Name, Seconds]), answers: ControlPlaneToken },
  removeJoinToken: { takes: z.tuple([Id, BootstrapTokenId, Name]), answers: z.undefined() },
  servingRequests: { takes: z.tuple([Id]), answers: z.array(ServingRequest) },
  approveServing: { takes: z.tuple([Id, Name]), answers: z.undefined() },
  markNode: { takes: z.tuple([Id, Name, NodeMarks]), answers: z.undefined() },
  drain: { takes: z.tuple([Id, Name]), answers: z.boolean() },
  uncordon: { takes: z.tuple([Id, Name]), answers: z.undefined() },
  load: { takes: z.tuple([Id]), answers: ClusterLoad },
  removeNode: { takes: z.tuple([Id, Name]), answers: z.undefined() },
  setAgent: { takes: z.tuple([Id, AgentObjects]), answers: z.undefined() },
} as const satisfies Record<keyof ControlPlanes, { readonly takes: z.ZodType; readonly answers: z.ZodType }>

export type CallName = keyof typeof CALLS

/** Why a call is refused; every other failure is a fault of the host. `gone`: there is no control plane, or not yet;
 *  the caller sees that when it reads the state again. */
export const RefusalReason = z.enum(['state_not_allowed', 'no_capacity', 'not_found', 'gone'])
export type RefusalReason = z.infer<typeof RefusalReason>
/** The body of a response with status 409. */
export const CallRefusal = z.object({ reason: RefusalReason, detail: z.string() })
export type CallRefusal = z.infer<typeof CallRefusal>
