/** Operations of all accounts, and those that move servers. */
import { ArrowLeftRight, ListChecks } from 'lucide-react'
import type { Operation } from '../../../../client/operator-schema.ts'
import { isCancellableByOperators } from '../../../../domain/operations.ts'
import { ruleOf } from '../../../api/portal.ts'
import { noun } from '../../../nouns/noun.ts'
import { kindText } from '../../../texts/service.ts'
import type { Look } from '../../../ui/state.tsx'
import { o } from '../../texts/index.ts'
import { OperationHead } from './head.tsx'

const isRunning = ({ status }: Operation): boolean => status === 'running' || status === 'pending'
const looks: Readonly<Record<string, Look>> = { succeeded: 'good', failed: 'bad', cancelled: 'off' }

const common = {
  area: 'work',
  list: 'list_operator_operations',
  read: 'get_operator_operation',
  member: 'operation',
  titleOf: ({ kind }: Operation) => kindText(kind),
  stateOf: ({ status }: Operation) => status,
  isBusy: isRunning,
  looks,
  columns: ['resource', 'actor', 'created_at', 'finished_at', 'error'],
  facts: ['resource', 'node_id', 'actor', 'created_at', 'started_at', 'deadline_at', 'finished_at', 'error'],
  Head: OperationHead,
  isListShort: true,
} as const

export const operation = noun({
  ...common,
  name: 'operation',
  icon: ListChecks,
  path: '/operations',
  actions: [
    {
      operation: 'cancel_operator_operation',
      isFirst: true,
      why: (item) =>
        isRunning(item)
          ? isCancellableByOperators(item.kind)
            ? undefined
            : o().operation.notCancellable
          : o().operation.isOver,
      confirm: {},
    },
    {
      operation: 'retry_operator_operation',
      isFirst: true,
      why: ({ status, kind }) =>
        status === 'failed' && ruleOf('retry_operator_operation').starts?.includes(kind) === true
          ? undefined
          : o().operation.notFailed,
      confirm: {},
    },
  ],
})

export const migration = noun({
  ...common,
  name: 'migration',
  icon: ArrowLeftRight,
  path: '/migrations',
  query: { kind: ['server.migrate', 'server.move'] },
  actions: operation.actions,
})
