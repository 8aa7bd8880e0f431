import { Operation } from '../../../resources/operation/index.ts'
import { kind } from '../../kit/admission/kind.ts'
import type { Targets } from '../../kit/change/targets.ts'
import type { Nodes } from '../node/index.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { operationFeed } from './feed.ts'
import type { Cancellables } from './cancel.ts'
import { operationEndpoints } from './endpoints.ts'
import { operatorOperationEndpoints } from './operator-endpoints.ts'

export { runningOperations } from './running.ts'

export const operation = noun<Parts & Cancellables & { readonly nodes: Nodes; readonly targets: Targets }>({
  name: 'operation',
  kinds: [kind(Operation, { access: 'write' })],
  endpoints: (parts) => [...operationEndpoints(parts), ...operatorOperationEndpoints(parts)],
  feeds: (parts) => [operationFeed(parts)],
})
