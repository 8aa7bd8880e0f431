/** FloatingIP: a public address of an account that points to one of its servers, as it is stored. */
import { z } from 'zod'
import { TARGET_PATTERN } from '../../domain/floating-ip/rules.ts'
import { fixed, resource } from '../kit/define.ts'
import {
  Conditions,
  ObservedGeneration,
  ReportedOperation,
  RequestedOrEditedOperation,
  ZoneName,
} from '../kit/shapes.ts'

const ADDRESS_LENGTH_MAXIMUM = 45
const TARGET_LENGTH_MAXIMUM = 253 + 'private:'.length

export const FloatingIp = resource({
  kind: 'FloatingIP',
  plural: 'floatingips',
  shortNames: ['fip'],
  scope: 'Namespaced',
  customers: 'write',
  description:
    'A public IPv4 address of an account in a zone. It points to one server at a time: to its public address, or ' +
    'to its interface in a private network whose router has NAT. The address stays the same when it moves to ' +
    'another server.',
  spec: z
    .strictObject({
      zone: ZoneName.describe('Zone of the floating IP. Cannot be changed.'),
      serverId: z.string().min(1).max(253).optional().describe('Name of the assigned Server; unassigned when absent.'),
      target: z
        .string()
        .max(TARGET_LENGTH_MAXIMUM)
        .regex(TARGET_PATTERN)
        .optional()
        .describe(
          '`public` for the public address of the server, or `private:` with the name of a Network for its ' +
            'interface there; public when absent.',
        ),
      address: z
        .string()
        .max(ADDRESS_LENGTH_MAXIMUM)
        .optional()
        .describe('Address that the API allocated. Written by the platform only.'),
      operation: RequestedOrEditedOperation,
    })
    .describe('Target of the floating IP.'),
  status: z
    .strictObject({
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
      address: z.string().max(ADDRESS_LENGTH_MAXIMUM).optional().describe('Its address.'),
      serverId: z.string().max(253).optional().describe('Name of the assigned Server.'),
      target: z
        .string()
        .max(TARGET_LENGTH_MAXIMUM)
        .optional()
        .describe('Address or interface of the server that it points to.'),
      appliedSequence: z
        .int()
        .min(0)
        .optional()
        .describe('Change of the network database that the newest operation waits for on the hosts.'),
      operation: ReportedOperation,
    })
    .describe('Observed target of the floating IP. Written by its controller.'),
  columns: [
    { name: 'Address', type: 'string', jsonPath: '.status.address' },
    { name: 'Server', type: 'string', jsonPath: '.status.serverId' },
    { name: 'Target', type: 'string', jsonPath: '.status.target' },
    { name: 'Zone', type: 'string', jsonPath: '.spec.zone' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: ['.spec.zone', '.spec.serverId'],
  rules: [fixed('zone'), fixed('address')],
})
export type FloatingIpSpec = z.infer<typeof FloatingIp.spec>
export type FloatingIpStatus = z.infer<typeof FloatingIp.status>
