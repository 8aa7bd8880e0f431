/** What a request would do, before it is sent: its price, how it counts against quotas, its manifest, or why it
 *  would be refused. The service carries it out and keeps nothing. */
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useEffect, useState } from 'react'
import type { DryRun } from '../../client/schema.ts'
import { cache } from '../api/cache.ts'
import { sessionLost } from '../api/client.ts'
import type { OperationId } from '../api/operations.ts'
import { Refusal } from '../api/refusal.ts'
import { after } from '../system.ts'
import { money, number, smallMoney } from '../texts/format.ts'
import { t } from '../texts/index.ts'
import { quotaText, typeText } from '../texts/service.ts'
import { Facts, Panel, Price, Soft } from '../ui/layout.tsx'
import { Note } from '../ui/state.tsx'
import type { Values } from './noun.ts'
import { send } from './reads.ts'

/** Nobody types slower; every pause is a request. */
const PAUSE_MILLISECONDS = 500
const MILLICENTS_PER_CENT = 1_000
const KEY = 'dry run'

export interface Trial {
  readonly result: DryRun | undefined
  /** It would be refused now. */
  readonly refusal: Refusal | undefined
}

export interface TrialInput {
  readonly operation: OperationId
  readonly path?: Readonly<Record<string, string>>
  readonly body: Values
  /** The form is complete and holds no secret; it is not being sent, and was not: a second one would be refused. */
  readonly isOn: boolean
}

/** Tries the request whenever what is filled in rests for a moment. */
export function useDryRun({ operation, path = {}, body, isOn }: TrialInput): Trial {
  const filled = JSON.stringify(body)
  const [rested, setRested] = useState<string>()
  const isSessionLost = sessionLost.use()
  useEffect(() => after(PAUSE_MILLISECONDS, () => setRested(filled)), [filled])
  useEffect(() => {
    // one that is on its way could come after what is sent
    if (!isOn) void cache.cancelQueries({ queryKey: [KEY] })
  }, [isOn])
  const { data, error } = useQuery({
    queryKey: [KEY, operation, path, rested],
    queryFn: async ({ signal }) => {
      const answer: unknown = await send(operation, {
        path,
        query: { dry_run: 'true' },
        signal,
        ...(Object.keys(body).length === 0 ? {} : { body }),
      })
      return answer as DryRun // answers of dry runs are this
    },
    enabled: isOn && rested === filled && !isSessionLost,
    retry: false,
    staleTime: 0,
    gcTime: 0,
    refetchOnWindowFocus: false,
  })
  if (rested !== filled) return { result: undefined, refusal: undefined }
  return { result: data?.dry_run === true ? data : undefined, refusal: isOfContent(error) ? error : undefined }
}

/** Whether what is filled in is refused. 400 is said at its field when it is sent, and 401 has its own sheet; too many
 *  requests and lost connections say nothing of it. */
const isOfContent = (error: unknown): error is Refusal =>
  error instanceof Refusal &&
  error.status > 401 &&
  error.status !== 429 &&
  (error.status < 500 || error.reason !== undefined)

/** Price and quotas of a trial. */
export function TrialView({ trial: { result, refusal } }: { readonly trial: Trial }): ReactNode {
  if (refusal !== undefined)
    return (
      <Note look="busy">
        {t().form.wouldRefuse} <span dir="auto">{refusal.message}</span>
      </Note>
    )
  if (result === undefined) return null
  const { price, would_claim: claims } = result
  if (price === null && claims.length === 0) return null
  return (
    <Panel>
      {price === null ? null : (
        <>
          <Price
            amount={money(Math.round(price.monthly_millicents / MILLICENTS_PER_CENT))}
            note={`${t().form.perMonth} · ${t().form.perHour(smallMoney(price.hourly_millicents))}`}
          />
          {price.lines.length < 2 ? null : (
            <Facts
              facts={price.lines.map(({ resource_type: type, plan, quantity, monthly_millicents: monthly }) => ({
                name: [typeText(type), plan, quantity === 1 ? '' : `× ${number(quantity)}`]
                  .filter((word) => word !== '')
                  .join(' '),
                value: money(Math.round(monthly / MILLICENTS_PER_CENT)),
              }))}
            />
          )}
        </>
      )}
      {claims.map(({ name, amount, used, limit }) => (
        <Soft key={name}>{t().form.wouldClaim(quotaText(name), number(amount), number(used), number(limit))}</Soft>
      ))}
    </Panel>
  )
}
