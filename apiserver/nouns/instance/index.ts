/** What hosts run. Controllers and the agent of the host write it; customers never see it. */
import { BackupJob } from '../../../resources/backup-job/index.ts'
import { Image, Instance, NodeReport, Observation, Volume } from '../../../resources/instance/index.ts'
import { ManagedMachine } from '../../../resources/managed-machine/index.ts'
import { exemptKind } from '../../kit/admission/kind.ts'
import { noun } from '../../kit/noun.ts'

const because = "it stands in a host's namespace, where only its agent has rights: hosts go on when the webhook is down"

export const instance = noun({
  name: 'instance',
  kinds: [
    // what load balancers have moved
    exemptKind(ManagedMachine, { access: 'read', because, isHeldByHost: true }),
    // how many guests a host says that it has
    exemptKind(NodeReport, { access: 'read', because }),
    exemptKind(Observation, { access: 'none', because }),
    // what guests take of nodes, whether or not it is claimed
    ...[Instance, Volume].map((resource) => exemptKind(resource, { access: 'read', because, isHeldByHost: true })),
    ...[Image, BackupJob].map((resource) => exemptKind(resource, { access: 'none', because, isHeldByHost: true })),
  ],
})
