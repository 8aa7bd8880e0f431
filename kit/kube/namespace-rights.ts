/** Rights that the platform's processes have in its own namespaces only. A RoleBinding in each namespace limits them.
 *  The process that works there first creates it: with the namespace, or when it is refused in one that is older than
 *  the binding. See docs/decisions/0126-rights-end-at-namespaces.md. */
import { z } from 'zod'
import type { Clock } from '../sys/clock.ts'
import { outsideDryRun } from '../sys/dry-run.ts'
import { RoleBinding } from './object.ts'
import { isAlreadyExists, isApiError, isNamespaceTerminating, isNotFound, type Store } from './store.ts'

const NamespaceRight = z.strictObject({
  /** How the names of the namespaces start. */
  start: z.string().min(1),
  /** Also the name of its bindings. */
  clusterRole: z.string().min(1),
  serviceAccount: z.strictObject({ name: z.string().min(1), namespace: z.string().min(1) }),
})
export type NamespaceRight = z.infer<typeof NamespaceRight>

/** In the form of the charts, as JSON; none where the processes may do everything. Throws what is wrong with it. */
export const NamespaceRights = z
  .string()
  .default('[]')
  .transform((text, context): unknown => {
    try {
      return JSON.parse(text)
    } catch {
      context.addIssue({ code: 'custom', message: 'must be JSON' })
      return z.NEVER
    }
  })
  .pipe(z.array(NamespaceRight))

/** Every API server knows a new binding only after a moment. */
const WAITS_MILLISECONDS = [0, 20, 50, 100, 200, 400, 800, 1_600, 3_200]

/** The store, which creates the bindings of a namespace when a request there is refused for lack of a right. Throws
 *  what the store throws, and its refusal when the bindings do not help. */
export function withNamespaceRights(
  store: Store,
  { rights, clock }: { readonly rights: readonly NamespaceRight[]; readonly clock: Clock },
): Store {
  if (rights.length === 0) return store

  async function bind(namespace: string, bindings: readonly NamespaceRight[]): Promise<void> {
    for (const { clusterRole: name, serviceAccount } of bindings) {
      const binding = {
        metadata: { namespace, name },
        spec: undefined,
        roleRef: { apiGroup: RoleBinding.group, kind: 'ClusterRole', name },
        subjects: [{ kind: 'ServiceAccount', ...serviceAccount }],
      }
      await store.create(RoleBinding, binding).catch((error: unknown) => {
        if (!isAlreadyExists(error)) throw error
      })
    }
  }

  /** `absent` is the result for a namespace that is deleted or being deleted. */
  async function within<Result>(
    namespace: string | undefined,
    call: () => Promise<Result>,
    absent?: () => Result,
  ): Promise<Result> {
    const bindings = rights.filter(({ start }) => namespace?.startsWith(start) === true)
    if (namespace === undefined || bindings.length === 0) return await call()
    let refusal: unknown
    for (const [count, milliseconds] of [undefined, ...WAITS_MILLISECONDS].entries())
      try {
        if (count === 1) await outsideDryRun(() => bind(namespace, bindings))
        if (milliseconds !== undefined && milliseconds > 0) await clock.sleep(milliseconds)
        return await call()
      } catch (error) {
        const isGone = count > 0 && (isNotFound(error) || isNamespaceTerminating(error))
        if (isGone && absent !== undefined) return absent()
        if (!isLackingRight(error)) throw error
        refusal = error
      }
    throw refusal
  }

  return {
    ...store,
    get: (type, key) =>
      within(
        key.namespace,
        () => store.get(type, key),
        () => undefined,
      ),
    list: (type, options) => within(options?.namespace, () => store.list(type, options)),
    create: (type, draft) => within(draft.metadata.namespace, () => store.create(type, draft)),
    replace: (type, object) => within(object.metadata.namespace, () => store.replace(type, object)),
    replaceStatus: (type, object) => within(object.metadata.namespace, () => store.replaceStatus(type, object)),
    patch: (type, key, ...patch) => within(key.namespace, () => store.patch(type, key, ...patch)),
    apply: (type, draft, ...more) => within(draft.metadata.namespace, () => store.apply(type, draft, ...more)),
    delete: (type, key, options) =>
      within(
        key.namespace,
        () => store.delete(type, key, options),
        () => {},
      ),
  }
}

/** Refused by the roles, not by a quota or an admission. */
const isLackingRight = (error: unknown): boolean =>
  isApiError(error) && error.code === 403 && /\bcannot \w+ resource\b/.test(error.message)
