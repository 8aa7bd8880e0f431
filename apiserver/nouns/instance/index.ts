/** The guests that hosts run. Controllers and the agent of the host write instances; customers never see them. */
import { BackupJob } from '../../../resources/backup-job/index.ts'
import { Image, Instance, NodeReport, Observation, Volume } from '../../../resources/instance/index.ts'
import { ManagedMachine } from '../../../resources/managed-machine/index.ts'
import { exemptKind } from '../../kit/admission/kind.ts'
import { noun } from '../../kit/noun.ts'

const because = "it stands in a host's namespace, where only its agent has rights: hosts go on when the webhook is down"

export const instance = noun({
  name: 'instance',
  kinds: [
    // the traffic of load balancers
    exemptKind(ManagedMachine, { access: 'read', because, isHeldByHost: true }),
    // how many guests a host reports
    exemptKind(NodeReport, { access: 'read', because }),
    exemptKind(Observation, { access: 'none', because }),
    // the usage of nodes by guests, claimed or not
    ...[Instance, Volume].map((resource) => exemptKind(resource, { access: 'read', because, isHeldByHost: true })),
    ...[Image, BackupJob].map((resource) => exemptKind(resource, { access: 'none', because, isHeldByHost: true })),
  ],
})
