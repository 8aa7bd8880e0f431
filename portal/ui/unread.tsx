/** In the place of what is not read yet: room for it, or why it could not be read. */
import type { ReactNode } from 'react'
import { defined } from '../../domain/defined.ts'
import { Refusal } from '../api/refusal.ts'
import { Loading } from './layout.tsx'
import { ProblemView } from './problem.tsx'

export interface UnreadProps {
  readonly error: unknown
  readonly retry?: () => void
  readonly lines?: number
}

export const Unread = ({ error, retry, lines = 3 }: UnreadProps): ReactNode =>
  error instanceof Refusal ? <ProblemView refusal={error} {...defined({ retry })} /> : <Loading lines={lines} />
