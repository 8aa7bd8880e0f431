/** Operations that have not ended, from their objects. */
import { isHiddenTarget } from '../../../domain/managed-machine/rules.ts'
import { isFinal } from '../../../domain/operations.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { Operation, type OperationView } from '../../../resources/operation/index.ts'
import type { Parts } from '../../kit/parts.ts'
import { listedViews } from './views.ts'

/** All of the account that are pending or running, as lists show them, newest first. */
export const runningOperations = ({ caches }: Pick<Parts, 'caches'>, accountId: string): readonly OperationView[] =>
  listedViews(
    [],
    caches
      .of(Operation)
      .inNamespace(accountNamespace(accountId))
      .filter(({ spec, status }) => !isHiddenTarget(spec.target) && !isFinal(status?.status ?? 'pending')),
    undefined,
  )
