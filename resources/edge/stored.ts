/** Edge: the gateway of a private network in both directions, as it is stored. */
import { z } from 'zod'
import { canonicalAddress } from '../../domain/network/addresses.ts'
import {
  canonicalRoles,
  EDGE_MEMBERS_MAXIMUM,
  EDGE_PLACEMENTS,
  EDGE_ROLES,
  EDGE_STATES,
  edgeFingerprint,
} from '../../domain/edge/rules.ts'
import { resource } from '../kit/define.ts'
import { ReportedOperation, RequestedOrEditedOperation, ZoneName } from '../kit/shapes.ts'
import {
  AddressText,
  AppliedSequence,
  CidrText,
  ObjectName,
  OBSERVED,
  Port,
  PublicKeys,
  StoredDisplayName,
} from '../kit/fields.ts'
import { AGE, READY, STATE, TITLE } from '../kit/columns.ts'

const FINGERPRINT_LENGTH_MAXIMUM = 64
const MACHINES_MAXIMUM = 8
const HOST_KEY_LENGTH_MAXIMUM = 256
const ADDRESSES_OF_BALANCER_MAXIMUM = 64
const Address = AddressText.min(1)
const Roles = z.array(z.enum(EDGE_ROLES)).max(EDGE_ROLES.length).meta({ 'x-kubernetes-list-type': 'set' })

const Members = z
  .array(
    z.strictObject({
      name: z.string().min(1).max(63).describe('Unique among the members.'),
      frontendPort: Port.describe('External port, on IPv4 and IPv6.'),
      address: Address.describe('An IPv4 host of the network, or an IPv6 address.'),
      port: Port.describe('Port on which the member listens.'),
      weight: z
        .int()
        .min(0)
        .max(255)
        .default(100)
        .describe('Relative share among members with the same frontend port.'),
      enabled: z.boolean().default(true).describe('Whether it receives new connections.'),
    }),
  )
  .max(EDGE_MEMBERS_MAXIMUM)

const Machine = z.strictObject({
  id: ObjectName.describe('Name of its Server.'),
  name: z.string().max(63).describe('Name of the machine within the edge.'),
  roles: Roles.describe('Roles of the machine.'),
  state: z.string().max(63).describe('State of its Server.'),
  isHealthy: z.boolean().describe('Whether its programs run with the newest configuration.'),
  healthDetail: z.string().max(1024).describe('Human-readable reason why it is not healthy.'),
  publicIpv4: Address.optional().describe('Its public IPv4 address.'),
  publicIpv6: Address.optional().describe('Its public IPv6 address.'),
  publicIpv6Prefix: CidrText.optional().describe('Its public IPv6 prefix.'),
  privateIpv4: Address.optional().describe('Its IPv4 address in the network.'),
  privateIpv6: Address.optional().describe('Its IPv6 address in the network.'),
})

export const Edge = resource({
  kind: 'Edge',
  plural: 'edges',
  shortNames: ['edg'],
  scope: 'Namespaced',
  customers: 'write',
  description:
    'Connects a private network whose servers have no public IPv4: a bastion for sign-in, a gateway to the IPv4 ' +
    'Internet, and a load balancer. Its machines are servers of the account that only the platform changes. A ' +
    'network has one edge.',
  spec: z
    .strictObject({
      zone: ZoneName.describe('Zone of its network.'),
      networkId: z.string().min(1).max(253).describe('Name of its Network.'),
      name: StoredDisplayName.describe('Display name.'),
      roles: Roles.min(1).describe('Roles of the edge.'),
      placement: z
        .enum(EDGE_PLACEMENTS)
        .default('combined')
        .describe('Whether each role has a separate machine, or all share one.'),
      plan: z.string().min(1).max(63).describe('Plan of its machines.'),
      sshKeys: PublicKeys.default([]).describe(
        'Public keys in one-line OpenSSH format that may sign in to its bastion.',
      ),
      members: Members.default([]).describe('Services in the network that its load balancer forwards to.'),
      operation: RequestedOrEditedOperation,
    })
    .describe('The desired state of the edge.'),
  status: z
    .strictObject({
      ...OBSERVED,
      state: z.enum(EDGE_STATES).optional().describe('State of the edge.'),
      configuration: z
        .strictObject({
          generation: z.int().min(1).describe('Increases with every change that its machines must apply.'),
          fingerprint: z
            .string()
            .max(FINGERPRINT_LENGTH_MAXIMUM)
            .describe('Fingerprint of the spec that has this generation.'),
        })
        .optional()
        .describe('Last configuration of its machines.'),
      machines: z.array(Machine).max(MACHINES_MAXIMUM).optional().describe('Its machines.'),
      balancer: z
        .strictObject({
          id: ObjectName.describe('Name of the LoadBalancer.'),
          isHealthy: z.boolean().describe('Whether both of its machines are healthy.'),
          healthDetail: z.string().max(1024).describe('Human-readable reason why it is not healthy.'),
          publicIpv4: Address.optional().describe('Its public IPv4 address.'),
          addresses: z.array(Address).max(ADDRESSES_OF_BALANCER_MAXIMUM).describe('All of its addresses.'),
        })
        .optional()
        .describe('Load balancer that has the role under separate placement.'),
      granted: z
        .strictObject({
          plan: z.string().min(1).max(63).describe('Plan of each of its machines.'),
          machines: z.array(z.string().max(63)).max(MACHINES_MAXIMUM).describe('Names of the granted machines.'),
          hasPair: z.boolean().default(false).describe('Whether it has a separate load balancer.'),
        })
        .optional()
        .describe('Part of the spec that the account may use. Excludes a change that the account may not pay for.'),
      leadsOut: z
        .strictObject({
          ipv4: Address.describe('For IPv4.'),
          ipv6: Address.describe('Address for the prefix 64:ff9b::/96 and for DNS.'),
        })
        .optional()
        .describe('Addresses of the gateway to the IPv4 Internet in the network.'),
      hostKey: z
        .string()
        .max(HOST_KEY_LENGTH_MAXIMUM)
        .optional()
        .describe('Public host key of its bastion; the same on every machine that has the role.'),
      lostSince: z
        .record(z.string(), z.string().max(64))
        .meta({ maxProperties: EDGE_ROLES.length })
        .optional()
        .describe('Roles that no machine fulfils, with the time since when.'),
      asked: z
        .string()
        .max(FINGERPRINT_LENGTH_MAXIMUM)
        .optional()
        .describe('Target of the newest operation; a difference from the spec shows a direct edit.'),
      appliedSequence: AppliedSequence,
      operation: ReportedOperation,
    })
    .describe('Observed state of the edge. Written by its controller.'),
  columns: [
    TITLE,
    { name: 'Network', type: 'string', jsonPath: '.spec.networkId' },
    { name: 'Placement', type: 'string', jsonPath: '.spec.placement' },
    STATE,
    READY,
    AGE,
  ],
  selectableFields: ['.spec.zone'],
  fixed: ['zone', 'networkId', 'placement'],
})
export type EdgeSpec = z.infer<typeof Edge.spec>
export type EdgeStatus = z.infer<typeof Edge.status>

/** Action on an edge; the kind of the operation does not distinguish it. */
export type EdgeAction = 'create' | 'update' | 'repair' | 'delete'

/** Input for its machines, with a number that increases with every change. */
export function edgeConfiguration({
  spec: { roles, plan, sshKeys, members },
  status,
}: {
  readonly spec: Pick<EdgeSpec, 'roles' | 'plan' | 'sshKeys' | 'members'>
  readonly status?: Pick<EdgeStatus, 'configuration'> | undefined
}): NonNullable<EdgeStatus['configuration']> {
  const fingerprint = edgeFingerprint({
    roles: canonicalRoles(roles),
    plan,
    sshKeys: sshKeys.toSorted(),
    members: members.map((member) => ({ ...member, address: canonicalAddress(member.address) })),
  })
  const known = status?.configuration
  if (known === undefined) return { generation: 1, fingerprint }
  return known.fingerprint === fingerprint ? known : { generation: known.generation + 1, fingerprint }
}
