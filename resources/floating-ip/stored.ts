/** FloatingIP: a public address of an account that leads to one of its servers, as it is stored. */
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
    'A public IPv4 address of an account in a zone, which points to one server at a time: to its public address, or ' +
    'to its interface in a private network whose router has NAT. It stays when it is moved to another server.',
  spec: z
    .strictObject({
      zone: ZoneName.describe('Zone that it is in. Cannot be changed.'),
      serverId: z
        .string()
        .min(1)
        .max(253)
        .optional()
        .describe('Name of the Server that it is assigned to; unassigned when absent.'),
      target: z
        .string()
        .max(TARGET_LENGTH_MAXIMUM)
        .regex(TARGET_PATTERN)
        .optional()
        .describe('What of the server: `public`, or `private:` and the name of a Network; public when absent.'),
      address: z
        .string()
        .max(ADDRESS_LENGTH_MAXIMUM)
        .optional()
        .describe('Its address, where the API has allocated it. Written by the platform only.'),
      operation: RequestedOrEditedOperation,
    })
    .describe('Target of the floating IP.'),
  status: z
    .strictObject({
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
      address: z.string().max(ADDRESS_LENGTH_MAXIMUM).optional().describe('Its address.'),
      serverId: z.string().max(253).optional().describe('Name of the Server that it is assigned to.'),
      target: z.string().max(TARGET_LENGTH_MAXIMUM).optional().describe('What of the server it points to.'),
      appliedSequence: z
        .int()
        .min(0)
        .optional()
        .describe('The change of the network database after which the newest operation waits for its hosts.'),
      operation: ReportedOperation,
    })
    .describe('What the floating IP points to. Written by its controller.'),
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
