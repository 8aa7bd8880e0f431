/** What the editor of a firewall holds: the draft, and the firewall that it was made from. */
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import type { Firewall, FirewallRule, Server } from '../../../client/schema.ts'
import { readAgain } from '../../api/cache.ts'
import { call, exchange } from '../../api/client.ts'
import { asRefusal, type Refusal } from '../../api/refusal.ts'
import { uuid } from '../../system.ts'
import { t } from '../../texts/index.ts'
import { notify } from '../../ui/toast.tsx'
import { type Draft, draftOf, isSameDraft, moved } from './firewall-rules.ts'

/** A firewall as it was read. */
export interface Versioned {
  readonly firewall: Firewall
  /** Of the whole server: it changes with everything else that is set there. */
  readonly version: string | null
}

/** The stream of changes has no firewalls. Operations of the server say when one may have changed. */
export function useFirewall({ id, active_operation: operation }: Server) {
  const query = useQuery({
    queryKey: ['get_server_firewall', { path: { id } }, 'version'],
    queryFn: async ({ signal }): Promise<Versioned> => {
      const { answer, version } = await exchange('get_server_firewall', { path: { id }, signal })
      return { firewall: answer.firewall, version }
    },
    staleTime: 0,
  })
  const { refetch } = query
  const running = operation?.id
  useEffect(() => void refetch({ cancelRefetch: false }), [refetch, running])
  return query
}

/** A rule in the editor. Rules have no names: its key keeps what is typed with it when it moves. */
export interface RuleRow {
  readonly key: string
  readonly rule: FirewallRule
  /** Its ports are no range: it cannot be sent. */
  readonly isWrong: boolean
}

export interface Editor {
  readonly draft: Draft
  /** What the draft was made from. */
  readonly base: Draft
  readonly rows: readonly RuleRow[]
  readonly isChanged: boolean
  readonly isWrong: boolean
  /** Somebody else has changed the firewall since. */
  readonly isOther: boolean
  readonly isBusy: boolean
  readonly refusal: Refusal | undefined
  readonly setDefaults: (defaults: Partial<Omit<Draft, 'rules'>>) => void
  readonly add: (rules: readonly FirewallRule[]) => void
  readonly change: (row: RuleRow) => void
  readonly move: (at: number, by: -1 | 1) => void
  readonly remove: (row: RuleRow) => void
  readonly discard: () => void
  /** Discards the draft for what others have made. */
  readonly takeNewest: () => void
  readonly send: () => Promise<void>
}

const rowsOf = (rules: readonly FirewallRule[]): readonly RuleRow[] =>
  rules.map((rule) => ({ key: uuid(), rule, isWrong: false }))

export function useEditor(server: string, newest: Versioned, readNewest: () => Promise<Versioned | undefined>): Editor {
  const [base, setBase] = useState(() => draftOf(newest.firewall))
  const [defaults, setDefaults] = useState<Omit<Draft, 'rules'>>(base)
  const [rows, setRows] = useState(() => rowsOf(base.rules))
  const [isBusy, setBusy] = useState(false)
  const [refusal, setRefusal] = useState<Refusal>()
  const draft = draftOf({ ...defaults, rules: rows.map(({ rule }) => rule) })
  const take = (next: Draft): void => {
    setBase(next)
    setDefaults(next)
    setRows(rowsOf(next.rules))
    setRefusal(undefined)
  }
  /** Only over the firewall that the draft was made from. The request names the version, so that nobody is faster. */
  const replace = async (): Promise<void> => {
    const before = await readNewest()
    if (before === undefined || !isSameDraft(before.firewall, base)) return
    await call('set_server_firewall', {
      path: { id: server },
      body: { ...draft, rules: [...draft.rules] },
      ...(before.version === null ? {} : { version: before.version }),
    })
    const after = await readNewest()
    take(draftOf(after?.firewall ?? draft))
    notify(t().firewall.sent)
    await readAgain('get_server', 'list_operations')
  }
  const send = async (): Promise<void> => {
    setBusy(true)
    setRefusal(undefined)
    try {
      await replace()
    } catch (error) {
      setRefusal(asRefusal('set_server_firewall', error))
    }
    setBusy(false)
  }
  return {
    draft,
    base,
    rows,
    isChanged: !isSameDraft(draft, base),
    isWrong: rows.some((row) => row.isWrong),
    isOther: !isBusy && !isSameDraft(newest.firewall, base),
    isBusy,
    refusal,
    setDefaults: (changed) => setDefaults({ ...defaults, ...changed }),
    add: (rules) => setRows([...rows, ...rowsOf(rules)]),
    change: (row) => setRows(rows.map((each) => (each.key === row.key ? row : each))),
    move: (at, by) => setRows(moved(rows, at, by)),
    remove: ({ key }) => setRows(rows.filter((each) => each.key !== key)),
    discard: () => take(base),
    takeNewest: () => take(draftOf(newest.firewall)),
    send,
  }
}
