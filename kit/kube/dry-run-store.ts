/** The Store during dry runs: writes are answered by the Kubernetes API, which keeps nothing (`client.ts` sends them as
 *  dry runs), and the same dry run reads what it has written. */
import { type DryRunContext, dryRunNotes } from '../sys/dry-run.ts'
import { withMergePatch } from './merge-patch.ts'
import { apiVersionOf, type Key, keyOf, keyText, type KubeObject, Namespace, type ResourceType } from './object.ts'
import { ApiError, type Draft, type Store } from './store.ts'

/** An object as a dry run would leave it. */
export interface DryRunObject {
  readonly type: ResourceType
  /** Undefined for one that would be created. */
  readonly before: KubeObject | undefined
  /** Undefined for one that would be deleted at once. */
  readonly after: KubeObject | undefined
}

const notes = dryRunNotes(({ startedAt }) => ({ startedAt, objects: new Map<string, DryRunObject>() }))
type Notes = NonNullable<ReturnType<typeof notes.current>>

/** Objects that exist in dry runs only. */
const invented = new WeakSet<object>()

/** Whether the object is the result of a dry run: no cache may have it. */
export const isInvented = (object: object): boolean => invented.has(object)

/** What a dry run would write, in the order of the first write to each object. */
export const dryRunObjects = (dryRun: DryRunContext): readonly DryRunObject[] => [...notes.of(dryRun).objects.values()]

const nameOf = (type: ResourceType, key: Key): string => `${type.plural}.${type.group} ${keyText(key)}`

/** Keeps what the object would become. */
function note<Object extends KubeObject | undefined>(
  { objects }: Notes,
  key: Key,
  { type, before, after }: DryRunObject & { readonly after: Object },
): Object {
  if (after !== undefined) invented.add(after)
  objects.set(nameOf(type, key), { type, before, after })
  return after
}

/** The store, which answers dry runs as if they had written. Lists and watches show what is stored. */
export function withDryRuns(store: Store): Store {
  const known = (type: ResourceType, key: Key): DryRunObject | undefined =>
    notes.current()?.objects.get(nameOf(type, key))

  /** Does the write, and notes its result if it is part of a dry run. `earlier` is the object by an earlier write of
   *  the dry run. */
  async function write<Spec, Status>(
    type: ResourceType<Spec, Status>,
    key: Key,
    work: (earlier: KubeObject<Spec, Status> | undefined) => Promise<KubeObject<Spec, Status>>,
  ): Promise<KubeObject<Spec, Status>> {
    const noted = notes.current()
    if (noted === undefined) return work(undefined)
    const found = known(type, key)
    const before = found === undefined ? await store.get(type, key) : found.before
    // it was written for this very type
    const after = await work(found?.after as KubeObject<Spec, Status> | undefined)
    return note(noted, key, { type, before, after })
  }

  return {
    ...store,
    async get(type, key) {
      const found = known(type, key)
      // it was written for this very type
      return found === undefined ? store.get(type, key) : (found.after as ReturnType<typeof drafted<any, any>>)
    },
    create: (type, draft) =>
      write(type, keyIn(draft), async (earlier) => {
        if (earlier !== undefined) throw alreadyExists(type, draft)
        const namespace = known(Namespace, { name: draft.metadata.namespace ?? '' })
        // The Kubernetes API could not find a namespace that nobody has created.
        const isInvented = namespace?.before === undefined && namespace?.after !== undefined
        return isInvented ? drafted(type, draft) : store.create(type, draft)
      }),
    replace: (type, object) => write(type, keyOf(object), () => store.replace(type, object)),
    replaceStatus: (type, object) => write(type, keyOf(object), () => store.replaceStatus(type, object)),
    patch: (type, key, patch, subresource) =>
      write(type, key, async (earlier) =>
        earlier === undefined ? store.patch(type, key, patch, subresource) : withMergePatch(earlier, patch),
      ),
    apply: (type, draft, subresource) => write(type, keyIn(draft), () => store.apply(type, draft, subresource)),
    async delete(type, key, options) {
      const noted = notes.current()
      const found = known(type, key)
      if (found?.after === undefined) await store.delete(type, key, options)
      if (noted === undefined) return
      const { before, after } = found ?? { before: await store.get(type, key), after: undefined }
      note(noted, key, { type, before, after: leaving(after ?? before, noted.startedAt) })
    },
  }
}

const keyIn = ({ metadata }: Draft<unknown, unknown>): Key => keyOf({ apiVersion: '', kind: '', metadata, spec: {} })

const drafted = <Spec, Status>(type: ResourceType<Spec, Status>, draft: Draft<Spec, Status>) => ({
  apiVersion: apiVersionOf(type),
  kind: type.kind,
  ...draft,
})

/** As Kubernetes would refuse it. */
const alreadyExists = ({ plural }: ResourceType, { metadata: { name } }: Draft<unknown, unknown>): ApiError =>
  new ApiError({ code: 409, reason: 'AlreadyExists', message: `${plural} "${name}" already exists` })

/** Its finalizers keep the object; undefined without any. */
function leaving(object: KubeObject | undefined, now: Date): KubeObject | undefined {
  if ((object?.metadata.finalizers ?? []).length === 0 || object === undefined) return undefined
  const deletionTimestamp = object.metadata.deletionTimestamp ?? now.toISOString()
  return { ...object, metadata: { ...object.metadata, deletionTimestamp } }
}
