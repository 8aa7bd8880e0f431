/** An API server in process, and a short way to talk to it. */
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { ADMIN, openCore, type Core, type CoreOptions } from '../../../embedded/kubernetes/core/core.ts'
import type { JsonObject } from '../../../embedded/kubernetes/core/json.ts'
import type { User } from '../../../embedded/kubernetes/core/object.ts'
import type { Request } from '../../../embedded/kubernetes/core/request.ts'
import { memoryStorage } from '../../../embedded/kubernetes/storage/memory.ts'

export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** The parsed body; loose, because tests look wherever they want. */
  readonly body: any
  readonly text: string
}

export interface World {
  readonly core: Core
  call(
    method: Request['method'],
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
    user?: User,
  ): Promise<Reply>
  get(path: string): Promise<Reply>
  post(path: string, body: unknown): Promise<Reply>
  put(path: string, body: unknown): Promise<Reply>
  merge(path: string, body: unknown): Promise<Reply>
  apply(path: string, body: unknown, query?: string): Promise<Reply>
  remove(path: string, body?: unknown): Promise<Reply>
}

export async function openWorld(options: Partial<CoreOptions> = {}): Promise<World> {
  const core = await openCore({
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    storage: memoryStorage(),
    ...options,
  })
  const call: World['call'] = async (method, path, body, headers = {}, user = ADMIN) => {
    const request: Request = {
      method,
      path,
      headers: { 'user-agent': 'tests/1', ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    }
    const response = await core.handle(request, user)
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: text.startsWith('{') ? JSON.parse(text) : text,
    }
  }
  const json = { 'content-type': 'application/json' }
  return {
    core,
    call,
    get: (path) => call('GET', path),
    post: (path, body) => call('POST', path, body, json),
    put: (path, body) => call('PUT', path, body, json),
    merge: (path, body) => call('PATCH', path, body, { 'content-type': 'application/merge-patch+json' }),
    apply: (path, body, query = '?fieldManager=tests') =>
      call('PATCH', `${path}${query}`, body, { 'content-type': 'application/apply-patch+yaml' }),
    remove: (path, body) => call('DELETE', path, body, json),
  }
}

/** Lines of a watch, read until `isDone`; the watch is ended then. */
export async function watchUntil(
  world: World,
  path: string,
  isDone: (events: readonly WatchEvent[]) => boolean,
  headers: Record<string, string> = {},
): Promise<WatchEvent[]> {
  const stop = new AbortController()
  const response = await world.core.handle({ method: 'GET', path, headers, signal: stop.signal }, ADMIN)
  const events: WatchEvent[] = []
  for await (const line of response.lines()) {
    events.push(JSON.parse(line) as WatchEvent)
    if (isDone(events)) break
  }
  stop.abort()
  return events
}

export interface WatchEvent {
  readonly type: string
  readonly object: any // tests look wherever they want
}

export const WIDGETS = '/apis/example.dev/v1/namespaces/default/widgets'

/** A kind with everything that definitions can have. */
export const widgetDefinition: JsonObject = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.dev' },
  spec: {
    group: 'example.dev',
    scope: 'Namespaced',
    names: { plural: 'widgets', kind: 'Widget', shortNames: ['wd'], categories: ['example'] },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: {
          status: {},
          scale: {
            specReplicasPath: '.spec.replicas',
            statusReplicasPath: '.status.replicas',
            labelSelectorPath: '.status.selector',
          },
        },
        selectableFields: [{ jsonPath: '.spec.size' }],
        additionalPrinterColumns: [
          { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
          { name: 'Replicas', type: 'integer', jsonPath: '.spec.replicas' },
          { name: 'Size', type: 'string', jsonPath: '.spec.size', priority: 1 },
          { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
        ],
        schema: {
          openAPIV3Schema: {
            type: 'object',
            required: ['spec'],
            properties: {
              spec: {
                type: 'object',
                required: ['size'],
                properties: {
                  size: { type: 'string', enum: ['small', 'large'], description: 'How big it is.' },
                  replicas: { type: 'integer', default: 1, minimum: 0, maximum: 9 },
                  image: { type: 'string', maxLength: 20, pattern: '^[a-z]+$' },
                  port: { 'x-kubernetes-int-or-string': true },
                  note: { type: 'string', nullable: true },
                  tags: {
                    type: 'array',
                    maxItems: 8,
                    items: { type: 'string', maxLength: 20 },
                    'x-kubernetes-list-type': 'set',
                  },
                  parts: {
                    type: 'array',
                    maxItems: 8,
                    'x-kubernetes-list-type': 'map',
                    'x-kubernetes-list-map-keys': ['name'],
                    items: {
                      type: 'object',
                      required: ['name'],
                      properties: {
                        name: { type: 'string', maxLength: 20 },
                        weight: { type: 'integer' },
                        colour: { type: 'string', default: 'grey' },
                      },
                    },
                  },
                  free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
                  settings: { type: 'object', additionalProperties: { type: 'string' } },
                },
              },
              status: {
                type: 'object',
                properties: {
                  replicas: { type: 'integer' },
                  selector: { type: 'string' },
                  conditions: {
                    type: 'array',
                    'x-kubernetes-list-type': 'map',
                    'x-kubernetes-list-map-keys': ['type'],
                    items: {
                      type: 'object',
                      required: ['type'],
                      properties: { type: { type: 'string' }, status: { type: 'string' } },
                    },
                  },
                },
              },
            },
          },
        },
      },
    ],
  },
}

export const widget = (name: string, spec: JsonObject = {}, metadata: JsonObject = {}): JsonObject => ({
  apiVersion: 'example.dev/v1',
  kind: 'Widget',
  metadata: { name, ...metadata },
  spec: { size: 'small', ...spec },
})

/** A world that knows widgets. */
export async function openWidgetWorld(options: Partial<CoreOptions> = {}): Promise<World> {
  const world = await openWorld(options)
  const made = await world.post('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', widgetDefinition)
  if (made.status !== 201) throw new Error(made.text)
  return world
}
