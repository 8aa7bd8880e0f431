/** The one view of a refusal: what is wrong, and what to do next. */
import './state.css'
import { type ReactNode } from 'react'
import type { Refusal } from '../api/refusal.ts'
import { t } from '../texts/index.ts'
import { quotaText } from '../texts/service.ts'
import { Button, ButtonLink } from './button.tsx'
import { Copy } from './copy.tsx'
import { Bar } from './state.tsx'

export interface ProblemProps {
  readonly refusal: Refusal
  /** Tries the same again. */
  readonly retry?: () => void
  /** Takes another zone and plan instead. */
  readonly take?: (alternative: { readonly zone: string; readonly plan: string }) => void
}

export function ProblemView({ refusal, retry, take }: ProblemProps): ReactNode {
  const { problem, status, requestId } = refusal
  const texts = t().problem
  return (
    <div className="problem" role="alert">
      <strong>{status === 0 ? texts.unreachable : (problem.title ?? texts.refused(status))}</strong>
      <p>{status === 0 ? texts.unreachableHelp : problem.detail}</p>
      {problem.errors === undefined || problem.errors.length === 0 ? null : (
        <ul>
          {problem.errors.map(({ field, detail }) => (
            <li key={field}>
              <code>{field}</code> {detail}
            </li>
          ))}
        </ul>
      )}
      <Quota refusal={refusal} />
      <Blocking servers={problem['blocking_servers']} />
      <NextStep refusal={refusal} />
      <div className="row">
        {problem.alternatives?.map(({ zone, plan }) => (
          <Button key={`${zone} ${plan}`} onPress={() => take?.({ zone, plan })}>
            {texts.instead(plan, zone)}
          </Button>
        ))}
        {retry === undefined ? null : <Button onPress={retry}>{texts.again}</Button>}
        {requestId === null ? null : (
          <span className="id">
            {texts.request} <Copy text={requestId} />
          </span>
        )}
      </div>
    </div>
  )
}

function Quota({ refusal }: { readonly refusal: Refusal }): ReactNode {
  const quota = refusal.problem.quota
  if (quota === undefined) return null
  const text = t().problem.quota(quotaText(quota.name), quota.used, quota.limit, quota.requested)
  return (
    <>
      <span>{text}</span>
      <Bar part={quota.limit === 0 ? 1 : quota.used / quota.limit} label={text} isBad />
    </>
  )
}

/** Servers that a drain has no room for. */
function Blocking({ servers }: { readonly servers: unknown }): ReactNode {
  if (!Array.isArray(servers) || servers.length === 0) return null
  return (
    <>
      <span>{t().problem.blocking}</span>
      <ul>
        {servers.map((id) => (
          <li key={String(id)}>
            <code>{String(id)}</code>
          </li>
        ))}
      </ul>
    </>
  )
}

/** Pages that help, by reason. */
function NextStep({ refusal }: { readonly refusal: Refusal }): ReactNode {
  const texts = t().problem
  if (refusal.status === 402)
    return (
      <div>
        <ButtonLink href="/settings/billing">{texts.toBilling}</ButtonLink>
      </div>
    )
  if (refusal.status === 403 && refusal.reason === undefined) return <p>{texts.askOwner}</p>
  if (refusal.retryAfterSeconds !== undefined) return <p>{texts.waitSeconds(refusal.retryAfterSeconds)}</p>
  return null
}
