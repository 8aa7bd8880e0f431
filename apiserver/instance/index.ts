/** What hosts run. Controllers and the agent of the host write it; customers never see it. */
import { Instance, NodeReport, Observation, Volume } from '../../resources/instance/index.ts'
import { exemptKind } from '../admission/kind.ts'
import { noun } from '../noun.ts'

export const instance = noun({
  name: 'instance',
  kinds: [Instance, Volume, NodeReport, Observation].map((resource) =>
    exemptKind(resource, {
      access: 'none',
      because: "it stands in a host's namespace, where only its agent has rights: hosts go on when the webhook is down",
    }),
  ),
})
