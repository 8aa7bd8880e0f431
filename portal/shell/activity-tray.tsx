/** What is in progress in the account, from every page. */
import { Activity } from 'lucide-react'
import { type ReactNode, useEffect, useRef } from 'react'
import type { Operation } from '../../client/schema.ts'
import { itemsOf, useList } from '../api/cache.ts'
import { LaterProgress } from '../nouns/later.tsx'
import { t } from '../texts/index.ts'
import { kindText } from '../texts/service.ts'
import { Button, ButtonLink } from '../ui/button.tsx'
import { Drop } from '../ui/drop.tsx'
import { Soft, Stack } from '../ui/layout.tsx'
import { announce } from '../ui/toast.tsx'

const SHOWN_MAXIMUM = 5

const isRunning = ({ status }: { readonly status: string }): boolean => status === 'running' || status === 'pending'

export function ActivityTray(): ReactNode {
  const operations = itemsOf(useList('list_operations', {}, { isBusy: true }).data)
  const running = operations.filter(isRunning)
  useEnds(operations)
  const text = running.length === 0 ? t().frame.activity : t().frame.running(running.length)
  return (
    <Drop
      label={t().frame.activity}
      button={
        <Button
          kind="quiet"
          label={text}
          icon={
            running.length === 0 ? <Activity aria-hidden="true" /> : <span className="spinner" aria-hidden="true" />
          }
        />
      }
    >
      <Stack>
        {running.length === 0 ? <Soft>{t().frame.quiet}</Soft> : null}
        {running.slice(0, SHOWN_MAXIMUM).map((operation) => (
          <LaterProgress key={operation.id} operation={operation} />
        ))}
        <ButtonLink href="/activity">{t().dashboard.all}</ButtonLink>
      </Stack>
    </Drop>
  )
}

/** Says when an operation that was running has ended. */
function useEnds(operations: readonly Operation[]): void {
  const before = useRef(new Set<string>())
  useEffect(() => {
    for (const { id, status, kind } of operations)
      if (before.current.has(id) && !isRunning({ status }))
        announce(`${kindText(kind)}: ${t().operations.statuses[status]}`)
    before.current = new Set(operations.filter(isRunning).map(({ id }) => id))
  }, [operations])
}
