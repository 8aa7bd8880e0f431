/** What the portal sends, and what it does with answers that are refused, lost or in parts. */
import { answer, useOutside } from './outside.ts'
import './components.ts'
import { QueryObserver } from '@tanstack/react-query'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { putFragmentBack, takeFromFragment } from '../../portal/api/browser.ts'
import { cache, readAgainSoon, rewrite } from '../../portal/api/cache.ts'
import { followChanges } from '../../portal/api/changes.ts'
import { exportAll } from '../../portal/api/export.ts'
import { openPortal } from '../../portal/api/portal.ts'
import { Refusal } from '../../portal/api/refusal.ts'
import { signOut } from '../../portal/api/session.ts'
import { customerPortal } from '../../portal/customer.ts'
import { sendOnce } from '../../portal/nouns/reads.ts'
import { requestKeys } from '../../portal/nouns/request-key.ts'
import { shownIn } from '../../portal/nouns/secrets.ts'
import { operatorPortal } from '../../portal/operator/portal.ts'
import { signOutStaff } from '../../portal/operator/session.ts'
import { loadTexts } from '../../portal/texts/index.ts'

const outside = useOutside()

beforeEach(() => openPortal(customerPortal))
afterEach(() => vi.useRealTimers())

describe('the key of a form', () => {
  it('is the same until it is edited or done', () => {
    let made = 0
    const { of, renew } = requestKeys(() => String((made += 1)))
    expect([of({ a: 1 }), of({ a: 1 }), of({ a: 2 })]).toEqual(['1', '1', '2'])
    renew()
    expect(of({ a: 2 })).toBe('3')
  })
})

describe('a secret that is shown once', () => {
  const created = { webhook: { id: 'w', name: 'hook' } }
  const create = () => sendOnce('create_webhook', { body: {}, idempotencyKey: 'k' })

  it('is known to be lost when the request was carried out before', async () => {
    outside.serve = () => answer(201, { ...created, secret: 'whsec_a' })
    expect(await create()).toEqual({ answer: { ...created, secret: 'whsec_a' }, isLost: false })
    outside.serve = () => answer(201, created, { 'idempotent-replayed': 'true' })
    const { answer: again, isLost } = await create()
    expect(isLost).toBe(true)
    expect(shownIn(again, { id: 'w', name: 'hook', hasSecrets: isLost })).toEqual({
      id: 'w',
      name: 'hook',
      secrets: undefined,
    })
  })

  it('is not looked for where no answer has one', async () => {
    outside.serve = () => answer(202, {}, { 'idempotent-replayed': 'true' })
    const { isLost } = await sendOnce('start_server', { path: { id: 's' }, idempotencyKey: 'k' })
    expect(isLost).toBe(false)
    expect(shownIn({}, { id: 's', name: 'web', hasSecrets: isLost })).toBeUndefined()
  })

  it('is in no cache after its form', async () => {
    const mutation = cache.getMutationCache().build(cache, { mutationFn: async () => ({ secret: 'whsec_a' }) })
    await mutation.execute(undefined)
    await expect.poll(() => cache.getMutationCache().getAll()).toEqual([])
  })
})

describe('a log in parts', () => {
  const textOf = async (parts: readonly Blob[]): Promise<string> => await new Blob([...parts]).text()
  const serve = (request: Request): Response => {
    const after = new URL(request.url).searchParams.get('after')
    const next = { null: '500', 500: '1000' }[String(after)]
    return new Response(`after ${after}\n`, next === undefined ? {} : { headers: { 'x-next-after': next } })
  }

  it('is read to its end', async () => {
    outside.serve = serve
    expect(await textOf(await exportAll('export_audit_entries'))).toBe('after null\nafter 500\nafter 1000\n')
  })

  it('is none when a part is refused', async () => {
    outside.serve = (request) =>
      request.url.includes('after=') ? answer(429, { title: 'Too many requests', detail: 'Wait.' }) : serve(request)
    await expect(exportAll('export_audit_entries')).rejects.toMatchObject({ status: 429, message: 'Wait.' })
  })
})

describe('signing out', () => {
  it.each([
    ['customers', customerPortal, signOut],
    ['staff', operatorPortal, signOutStaff],
  ])('of %s is said to have failed, and is done without a session', async (_who, portal, run) => {
    openPortal(portal)
    outside.serve = () => answer(503, { title: 'Unavailable' })
    await expect(run()).rejects.toMatchObject({ status: 503 })
    outside.serve = () => answer(401, { title: 'Unauthenticated' })
    await run()
  })

  it('leaves the page only when it is done', async () => {
    await loadTexts()
    const { leave } = await import('../../portal/shell/person-menu.tsx')
    await leave(async () => {
      throw new Refusal('log_out_staff', new Response(null, { status: 503 }), { detail: 'Not now.' })
    })
    expect(outside.left).toEqual([])
    await leave(async () => '/login')
    expect(outside.left).toEqual(['/login'])
  })
})

describe('a token of a mail', () => {
  it('is taken out of the address, and is there again when the page is loaded in another language', () => {
    Object.assign(outside.location, { pathname: '/verify-email', hash: '#token=secret' })
    expect(takeFromFragment('token')).toBe('secret')
    expect(outside.location.hash).toBe('')
    putFragmentBack()
    expect(takeFromFragment('token')).toBe('secret')
  })

  it('is put on no other page', () => {
    Object.assign(outside.location, { pathname: '/verify-email', hash: '#token=secret' })
    takeFromFragment('token')
    outside.location.pathname = '/login'
    putFragmentBack()
    expect(outside.location.hash).toBe('')
  })
})

describe('what is on the screen', () => {
  it('is read again at once, and then once a second however much changes', async () => {
    vi.useFakeTimers()
    let reads = 0
    const queryKey = ['list_servers', { state: 'started' }]
    const watched = new QueryObserver(cache, { queryKey, queryFn: () => (reads += 1) })
    const stopWatching = watched.subscribe(() => {})
    await vi.advanceTimersByTimeAsync(0)
    expect(reads).toBe(1)
    for (let changes = 0; changes < 5; changes++) readAgainSoon(['list_servers'])
    await vi.advanceTimersByTimeAsync(999)
    expect(reads).toBe(2)
    await vi.advanceTimersByTimeAsync(1)
    expect(reads).toBe(3)
    await vi.advanceTimersByTimeAsync(5_000)
    expect(reads).toBe(3)
    stopWatching()
    cache.clear()
  })
})

describe('what was read', () => {
  const queryKey = ['get_edge', { path: { id: 'one' } }]
  const add = (texts: readonly string[]) => [...texts, 'changed']
  const isBehind = () => cache.getQueryState(queryKey)?.isInvalidated

  it('still has to be read again after it was rewritten', async () => {
    vi.useFakeTimers()
    cache.setQueryData(queryKey, ['read'])
    await cache.invalidateQueries({ queryKey })
    rewrite(queryKey, add)
    expect(cache.getQueryData(queryKey)).toEqual(['read', 'changed'])
    expect(isBehind()).toBe(true)
    await vi.advanceTimersByTimeAsync(2_000) // the rest after a reading is over
    cache.clear()
  })

  it('is not read because it was rewritten', () => {
    cache.setQueryData(queryKey, ['read'])
    rewrite(queryKey, add)
    expect(isBehind()).toBe(false)
    rewrite(['get_edge', { path: { id: 'other' } }], add)
    expect(cache.getQueryCache().getAll()).toHaveLength(1)
    cache.clear()
  })

  it('is read once more when it was rewritten while it was read, which goes on', async () => {
    vi.useFakeTimers()
    let reads = 0
    let ended = 0
    const queryFn = async () => {
      reads += 1
      await new Promise((resolve) => setTimeout(resolve, 1_500))
      ended += 1
      return [`reading ${reads}`]
    }
    const stopWatching = new QueryObserver(cache, { queryKey, queryFn }).subscribe(() => {})
    await vi.advanceTimersByTimeAsync(100)
    for (let changes = 0; changes < 3; changes++) rewrite(queryKey, add)
    await vi.advanceTimersByTimeAsync(1_400)
    expect([reads, ended]).toEqual([1, 1])
    expect(cache.getQueryData(queryKey)).toEqual(['reading 1'])
    await vi.advanceTimersByTimeAsync(2_500)
    expect([reads, ended]).toEqual([2, 2])
    await vi.advanceTimersByTimeAsync(10_000)
    expect(reads).toBe(2)
    stopWatching()
    cache.clear()
  })
})

describe('a busy service', () => {
  it('says when a repetition makes sense', () => {
    const refused = (headers: Readonly<Record<string, string>>) =>
      new Refusal('list_servers', new Response(null, { status: 429, headers }), {}).retryAfterSeconds
    expect([refused({ 'retry-after': '7' }), refused({})]).toEqual([7, undefined])
  })

  it('is asked for the stream of changes no sooner than it wants', async () => {
    vi.useFakeTimers()
    outside.serve = () => answer(503, {}, { 'retry-after': '120' })
    const ended = new AbortController()
    followChanges(new Map(), ended.signal)
    const count = () => outside.requests.filter(({ url }) => url.endsWith('/v1/changes')).length
    await vi.advanceTimersByTimeAsync(119_000)
    expect(count()).toBe(1)
    await vi.advanceTimersByTimeAsync(3_000)
    expect(count()).toBe(2)
    ended.abort()
  })
})
