/** The path of every API request: match, the steps that its route enables, handler, response; then one log line and one
 *  measurement. The order of the steps is the order of refusals. */
import { asListed, badField, type Problem, Problem as ProblemError, Unavailable } from '../../domain/problem.ts'
import type { Logger } from '../sys/log.ts'
import { Histogram, type Registry } from '../sys/metrics.ts'
import { newUuid, type Random } from '../sys/random.ts'
import { inDryRun } from '../sys/dry-run.ts'
import { inThisTrace, markFailed, type Span, startSpan, withSpan } from '../sys/tracing.ts'
import type { Answer, Call, Caller, Customer, Operator, RequestFacts } from './call.ts'
import { deprecationHeaders } from './deprecation.ts'
import { type DescribeDryRun, DRY_RUN_MEDIA_TYPE, DryRun, wouldAnswer } from './dry-run.ts'
import type { Endpoint } from './endpoint.ts'
import type { HttpRequest, HttpResponse, HttpService } from './exchange.ts'
import { factsReader, trustIn } from './facts.ts'
import { type IdempotencyKeys, idempotencyKeyOf, once } from './idempotency.ts'
import { holdAccess } from './lasting.ts'
import { compileMatcher } from './match.ts'
import {
  isSignedIn,
  isUnsafe,
  type LastingAccess,
  type StepContext,
  type Step,
  type StepMaker,
  type StepParts,
} from './step.ts'
import { createBuckets } from './rates.ts'
import { renderAnswer, renderProblem, toProblem } from './render.ts'
import { isPlainRead, represent } from './representation.ts'
import { route, type Route } from './route.ts'
import { authenticate } from './steps/authenticate.ts'
import { spendBudget } from './steps/budget.ts'
import { guardCredentials } from './steps/credential-guard.ts'
import { checkClusterScope } from './steps/cluster-scope.ts'
import { checkCredentialKind } from './steps/credential-kind.ts'
import { checkCsrf } from './steps/csrf.ts'
import { limitAddress } from './steps/limit-address.ts'
import { limitCaller } from './steps/limit-caller.ts'
import { checkOrigin } from './steps/origin.ts'
import { parseInput } from './steps/parse.ts'
import { checkOperator, checkPermission } from './steps/permission.ts'
import { checkStanding } from './steps/standing.ts'
import { checkVerifiedEmail } from './steps/verified-email.ts'

/** 403 origin; 429; 401; 429; 403 CSRF; 403 kind of credential; 403 area of a token; 403 email; 403 credential guard;
 *  403 permission; 400, 413, 415; 429; 402; then the handler. */
const STEPS: readonly StepMaker[] = [
  checkOrigin,
  limitAddress,
  authenticate,
  spendBudget,
  checkCsrf,
  checkCredentialKind,
  checkClusterScope,
  checkVerifiedEmail,
  guardCredentials,
  checkPermission,
  checkOperator,
  parseInput,
  limitCaller,
  checkStanding,
]

/** The steps that decide whether the caller may; repeated while a stream lasts or a request waits. */
const ACCESS_STEPS: readonly StepMaker[] = [
  authenticate,
  checkCredentialKind,
  checkClusterScope,
  checkVerifiedEmail,
  guardCredentials,
  checkPermission,
  checkOperator,
]

export type RequestDurations = Histogram<'operation_id' | 'method' | 'status'>

/** Once for each registry; shared by its pipelines. */
export const requestDurations = (metrics: Registry): RequestDurations =>
  new Histogram({
    name: 'svccloud_http_request_duration_seconds',
    help: 'Time to answer a request, streams excepted.',
    labelNames: ['operation_id', 'method', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers: [metrics],
  })

/** A refused mutation or credential read of a signed-in customer or an operator. */
export interface RequestRefusal {
  readonly route: Route
  readonly caller: Customer | Operator
  readonly request: RequestFacts
  readonly audited: Call['audited']
  /** The `id` in the path; empty where it has none. */
  readonly resourceId: string
  readonly outcome: 'denied' | 'failed'
  readonly problem: Problem
}

export interface PipelineOptions extends Omit<StepParts, 'takeBudget'> {
  readonly endpoints: readonly Endpoint[]
  /** Writes the refusal's audit entry. */
  readonly auditRefusal: (refusal: RequestRefusal) => Promise<void>
  /** Remembers requests that may be repeated; without it their keys are ignored. */
  readonly idempotencyKeys?: IdempotencyKeys
  /** What dry runs show in addition to the answer; without it they are refused. */
  readonly describeDryRun?: DescribeDryRun
  /** Does the work of a signed-in customer in the name of the account, within its share of common resources. */
  readonly forAccount?: <Result>(accountId: string, work: () => Promise<Result>) => Promise<Result>
  /** Converts failures of the application's dependencies into Unavailable; returns anything else as it is. */
  readonly translate: (error: unknown) => unknown
  readonly random: Random
  readonly log: Logger
  readonly durations: RequestDurations
  /** CIDRs of the proxies that are trusted about the client's address. */
  readonly trustedProxies: readonly string[]
  /** Whether clients use HTTPS: cookies are then sent back over HTTPS only. */
  readonly isSecure: boolean
  /** Checks every success against its route's schema: for tests. */
  readonly checkAnswers: boolean
}

interface RouteSteps {
  readonly route: Route
  readonly steps: readonly Step[]
  /** Repeated while it lasts. */
  readonly accessSteps: readonly Step[]
  /** Its answers may be compressed, or left out because the client has them. */
  readonly isPlain: boolean
  readonly handle: Endpoint['handle']
}

const PUBLIC: Caller = { kind: 'public' }
/** Represents every path and method without a route. */
const UNMATCHED = route({
  id: 'none',
  method: 'GET',
  path: '/',
  summary: '',
  permission: null,
  credentials: ['public'],
  answers: {},
})

/** Compiles every route once. Throws for one that cannot be guarded as it declares. */
export function createPipeline(options: PipelineOptions): HttpService {
  const { clock, random } = options
  const parts: StepParts = { ...options, takeBudget: createBuckets(clock) }
  const match = compileMatcher(
    options.endpoints.map(
      ({ route, handle }): RouteSteps => ({
        route,
        handle,
        steps: STEPS.flatMap((make) => make(route, parts) ?? []),
        accessSteps: ACCESS_STEPS.flatMap((make) => make(route, parts) ?? []),
        isPlain: isPlainRead(route),
      }),
    ),
  )
  const unmatchedSteps = [identify(parts), spendBudget(UNMATCHED, parts) ?? []].flat()
  const readFacts = factsReader(options.trustedProxies)
  const isTrusted = trustIn(options.trustedProxies)
  const report = reporter(options)

  return async (incoming) => {
    const startedAt = clock.monotonicMilliseconds()
    const headers: Record<string, string> = { 'x-request-id': incoming.requestId ?? newUuid(random) }
    const request = readFacts(incoming, headers['x-request-id'] ?? '')
    const queryAt = incoming.target.indexOf('?')
    const path = queryAt < 0 ? incoming.target : incoming.target.slice(0, queryAt)
    const found = match(incoming.method, path)
    const route = found.found ? found.target.route : UNMATCHED
    const context: StepContext = {
      route,
      incoming,
      request,
      rawParams: found.found ? found.params : {},
      rawQuery: queryAt < 0 ? '' : incoming.target.slice(queryAt + 1),
      caller: PUBLIC,
      params: undefined,
      query: undefined,
      body: null,
      lasting: undefined,
      audited: { as: route.audit },
      headers: { ...headers, ...deprecationHeaders(route) },
    }
    const span = requestSpan(context, isTrusted(incoming.remoteAddress))
    return withSpan(span, async () => {
      const response = found.found
        ? await answer(found.target, context, options)
        : await refuseUnmatched(found.allow, context, unmatchedSteps, options)
      const { caller, lasting } = context
      return report(response, { incoming, request, startedAt, operationId: route.id, caller, lasting, span })
    })
  }
}

/** A request of a tool is part of the MCP request. For others, only our own proxies continue a trace. The trace of
 *  anybody else becomes a link, so that nobody outside decides what is recorded, or writes into the traces of
 *  others. */
function requestSpan({ route: { id, path }, incoming, request }: StepContext, isTrusted: boolean): Span {
  const isInner = incoming.requestId !== undefined
  const traceHeader = isInner ? undefined : request.header('traceparent')
  const isUnmatched = id === UNMATCHED.id
  return startSpan({
    name: isUnmatched ? incoming.method : `${incoming.method} ${path}`,
    kind: isInner ? 'internal' : 'server',
    isRoot: !isInner,
    ...(isTrusted ? { parent: traceHeader } : { link: traceHeader }),
    attributes: {
      'http.request.method': incoming.method,
      ...(isUnmatched ? {} : { 'http.route': path, 'svccloud.operation_id': id }),
      'client.address': request.sourceIp,
      'svccloud.request_id': request.requestId,
    },
  })
}

/** Requests for unknown paths also use the caller's budget; a caller that cannot be identified counts as anonymous. */
const identify =
  ({ authenticate: find }: StepParts): Step =>
  async (context) => {
    context.caller = (await find(context.request).catch(() => undefined)) ?? PUBLIC
  }

async function refuseUnmatched(
  allow: readonly string[],
  context: StepContext,
  steps: readonly Step[],
  options: PipelineOptions,
): Promise<HttpResponse> {
  const { incoming, request, headers } = context
  try {
    for (const step of steps) await step(context)
    throw allow.length === 0
      ? new ProblemError(404, 'There is nothing at this path.')
      : new ProblemError(405, `This path does not take ${incoming.method}.`, { allow })
  } catch (error) {
    return renderProblem(toProblem(options.translate(error), request.requestId), headers)
  }
}

async function answer(
  { route, steps, accessSteps, isPlain, handle }: RouteSteps,
  context: StepContext,
  options: PipelineOptions,
): Promise<HttpResponse> {
  try {
    for (const step of steps) {
      const pending = step(context)
      if (pending !== undefined) await pending
    }
    const { caller, params, query, body, audited } = context
    if (route.mediaType === 'text/event-stream' || isWaiting(query))
      context.lasting = holdAccess(context, accessSteps, options.clock)
    const request = context.lasting?.request ?? context.request
    const now = options.clock.now()
    // parsed by this route's schemas
    const call = { route, caller, params, query, body, request, now, audited } as Call
    const isDry = wantsDryRun(context)
    const carryOut = async () => {
      const outcome = await (isDry ? answerDryRun(handle, call, options) : handle(call))
      // What a caller may not see any longer is not answered, however short the wait was.
      if (isWaiting(query)) await context.lasting?.confirm()
      if (options.checkAnswers && !isDry) checkAnswer(route, outcome)
      return renderAnswer(outcome, route, { headers: context.headers, isSecure: options.isSecure })
    }
    const { idempotencyKeys: keys, forAccount } = options
    const givenKey = keys === undefined ? undefined : idempotencyKeyOf(context)
    const key = isDry ? undefined : givenKey
    // An outage may come after the change was made: only a refusal releases the key.
    const isRefusal = (error: unknown) => options.translate(error) instanceof ProblemError
    const work = () =>
      keys === undefined || key === undefined ? carryOut() : once({ keys, key, now, isRefusal }, context, carryOut)
    const response = await (isSignedIn(caller) && forAccount !== undefined
      ? forAccount(caller.accountId, work)
      : work())
    return isPlain ? await represent(request, response) : response
  } catch (error) {
    const problem = await refuse(context, options.translate(error), options)
    return renderProblem(problem, context.headers, challengeOf(context.request))
  }
}

/** `wait` is what every route calls the seconds that it may wait before it answers. */
const isWaiting = (query: unknown): boolean =>
  typeof query === 'object' && query !== null && 'wait' in query && query.wait !== undefined

/** Whether the request asks what would happen, also if it was refused before its query was parsed. */
const wantsDryRun = ({ route, rawQuery }: Pick<StepContext, 'route' | 'rawQuery'>): boolean =>
  route.takesDryRun && new URLSearchParams(rawQuery).get('dry_run') === 'true'

/** Answers 200 with what the handler would do. Throws what it throws. */
async function answerDryRun(handle: Endpoint['handle'], call: Call, options: PipelineOptions): Promise<Answer> {
  const { route, caller, now } = call
  const { describeDryRun, checkAnswers } = options
  if (describeDryRun === undefined || !isSignedIn(caller)) throw badField('dry_run', 'is not offered here')
  const dryRun = { startedAt: now }
  return inDryRun(dryRun, async () => {
    const outcome = await handle(call)
    // Secrets of resources that do not exist are not made.
    if (checkAnswers && route.secretFields.length === 0) checkAnswer(route, outcome)
    const body = {
      dry_run: true,
      ...(await describeDryRun(dryRun, { ...call, caller })),
      would: wouldAnswer(route, outcome),
    } satisfies DryRun
    if (checkAnswers) DryRun.parse(body)
    return { status: 200, body, headers: { 'content-type': DRY_RUN_MEDIA_TYPE } }
  })
}

/** RFC 6750: a token that was sent but not accepted is named as the error. */
const challengeOf = (request: RequestFacts): string =>
  /^bearer /i.test(request.header('authorization') ?? '') ? 'Bearer error="invalid_token"' : 'Bearer'

/** The Problem for the caller. If a refusal cannot be recorded, the answer becomes an outage: nothing happens
 *  unrecorded. */
async function refuse(context: StepContext, error: unknown, options: PipelineOptions): Promise<Problem> {
  const { request } = context
  const problem = asListed(toProblem(error, request.requestId), context.route.refuses)
  if (problem.status >= 500 && problem.cause !== undefined) {
    // A dependency that is away for a while is no fault of the request: metrics count it, and the components that retry
    // it report it.
    options.log[problem.cause instanceof Unavailable ? 'info' : 'error']('request failed', {
      request_id: request.requestId,
      operation_id: context.route.id,
      error: problem.cause,
    })
  }
  // A dry run leaves nothing behind, as with kubectl.
  const refusal = wantsDryRun(context) ? undefined : refusalOf(context, problem)
  if (refusal === undefined) return problem
  try {
    await options.auditRefusal(refusal)
    return problem
  } catch (failure) {
    const translated = options.translate(failure)
    options.log[translated instanceof Unavailable ? 'info' : 'error']('refusal not audited', {
      request_id: request.requestId,
      operation_id: context.route.id,
      error: failure,
    })
    return problem.status === 503 ? problem : toProblem(translated, request.requestId)
  }
}

const FAILED: readonly number[] = [402, 409, 422, 501, 503]

function refusalOf(
  { route, caller, request, rawParams, audited }: StepContext,
  problem: Problem,
): RequestRefusal | undefined {
  if (
    route.audit === null ||
    !(isSignedIn(caller) || caller.kind === 'operator') ||
    !(isUnsafe(route) || route.isCredentialRead)
  )
    return undefined
  const outcome = problem.status === 403 ? 'denied' : FAILED.includes(problem.status) ? 'failed' : undefined
  return outcome === undefined
    ? undefined
    : { route, caller, request, audited, resourceId: rawParams['id'] ?? '', outcome, problem }
}

function checkAnswer(route: Route, outcome: Answer): void {
  if (!(outcome.status in route.answers))
    throw new TypeError(`${route.id} answered ${outcome.status}, which its route does not declare`)
  const schema = route.answers[outcome.status]
  if ('stream' in outcome || schema === undefined) return
  const body =
    'json' in outcome ? JSON.parse(Buffer.from(outcome.json).toString()) : 'body' in outcome ? outcome.body : undefined
  if (schema === null) {
    if (body !== undefined) throw new TypeError(`${route.id} answered ${outcome.status} with a body`)
    return
  }
  const checked = schema.safeParse(body)
  if (!checked.success)
    throw new TypeError(
      `${route.id} answered ${outcome.status} in another shape than its route declares: ${checked.error.message}`,
    )
}

interface RequestSummary {
  readonly incoming: HttpRequest
  readonly request: RequestFacts
  readonly startedAt: number
  readonly operationId: string
  readonly caller: Caller
  readonly lasting?: LastingAccess | undefined
  readonly span: Span
}

/** One log line, one measurement and the end of the span for each request, when its response is known; for a stream
 *  when that has ended. */
function reporter({
  clock,
  log,
  durations,
}: PipelineOptions): (response: HttpResponse, summary: RequestSummary) => HttpResponse {
  return (response, summary) => {
    const { incoming, request, operationId, caller, span } = summary
    const write = inThisTrace(() => {
      endRequestSpan(span, response.status, caller)
      log.info('request', {
        request_id: request.requestId,
        operation_id: operationId,
        method: incoming.method,
        status: response.status,
        duration_milliseconds: Math.round((clock.monotonicMilliseconds() - summary.startedAt) * 10) / 10,
        source_ip: request.sourceIp,
        ...(isSignedIn(caller)
          ? { account_id: caller.accountId, actor: caller.actor }
          : caller.kind === 'operator'
            ? { actor: caller.actor }
            : {}),
      })
    })
    if (typeof response.body !== 'string' && !(response.body instanceof Uint8Array))
      return {
        ...response,
        body: untilEnd(response.body, () => {
          summary.lasting?.end()
          write()
        }),
      }
    summary.lasting?.end()
    const method = operationId === UNMATCHED.id ? 'any' : incoming.method
    durations.observe(
      { operation_id: operationId, method, status: response.status },
      (clock.monotonicMilliseconds() - summary.startedAt) / 1000,
    )
    write()
    return response
  }
}

function endRequestSpan(span: Span, status: number, caller: Caller): void {
  span.setAttribute('http.response.status_code', status)
  if (isSignedIn(caller)) span.setAttribute('svccloud.account_id', caller.accountId)
  if (status >= 500) markFailed(span, status)
  span.end()
}

async function* untilEnd<Chunk>(chunks: AsyncIterable<Chunk>, ended: () => void): AsyncIterable<Chunk> {
  try {
    yield* chunks
  } finally {
    ended()
  }
}
