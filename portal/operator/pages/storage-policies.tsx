/** How many copies of each block the zones keep, and how far apart. */
import { type ReactNode, useState } from 'react'
import type { StoragePolicy } from '../../../client/operator-schema.ts'
import { itemsOf, readAgain, useList, useRead } from '../../api/cache.ts'
import { call } from '../../api/client.ts'
import { asRefusal, Refusal } from '../../api/refusal.ts'
import { useMay } from '../../api/session.ts'
import { Fields } from '../../nouns/fields.tsx'
import { faultsOf, useBodies, useForm } from '../../nouns/form.ts'
import type { FormField } from '../../nouns/noun.ts'
import { number } from '../../texts/format.ts'
import { t } from '../../texts/index.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { Facts, Loading, Page, Panel } from '../../ui/layout.tsx'
import { notify } from '../../ui/toast.tsx'
import { Unread } from '../../ui/unread.tsx'
import { o } from '../texts/index.ts'

export function StoragePoliciesPage(): ReactNode {
  const capacity = useList('get_capacity')
  const zones = [...new Set(itemsOf(capacity.data).map(({ zone }) => zone))]
  return (
    <Page title={o().policy.title} note={o().policy.note}>
      {capacity.data === undefined ? (
        <Panel>
          <Unread error={capacity.error} retry={() => void capacity.refetch()} />
        </Panel>
      ) : null}
      {zones.map((zone) => (
        <PolicyOf key={zone} zone={zone} />
      ))}
    </Page>
  )
}

function PolicyOf({ zone }: { readonly zone: string }): ReactNode {
  const { data, error, refetch } = useRead('get_zone_storage_policy', { path: { zone } })
  const may = useMay()
  const [isChanging, setChanging] = useState(false)
  const policy = data?.storage_policy
  // a zone without shared storage has no policy
  const hasNone = error instanceof Refusal && error.status === 409
  if (policy === undefined)
    return (
      <Panel title={zone}>
        {hasNone ? <p>{o().policy.none}</p> : <Unread error={error} retry={() => void refetch()} />}
      </Panel>
    )
  const { pools, replicas, failure_domain: domain } = policy
  const { words } = t().choices
  return (
    <Panel
      title={zone}
      buttons={
        <Button why={may('set_zone_storage_policy') ? undefined : o().needsRole} onPress={() => setChanging(true)}>
          {o().policy.change}
        </Button>
      }
    >
      <Facts
        facts={[
          { name: o().fields.pools, value: pools.join(', ') },
          { name: o().fields.replicas, value: replicas === null ? o().policy.differs : number(replicas) },
          { name: o().fields.failure_domain, value: domain === null ? o().policy.differs : (words[domain] ?? domain) },
        ]}
      />
      {isChanging ? <Change policy={policy} close={() => setChanging(false)} /> : null}
    </Panel>
  )
}

const FORM: readonly FormField[] = [{ name: 'replicas' }, { name: 'failure_domain' }]

function Change({ policy, close }: { readonly policy: StoragePolicy; readonly close: () => void }): ReactNode {
  const { zone, replicas, failure_domain: domain } = policy
  const form = useForm({ replicas, failure_domain: domain })
  const schema = useBodies()?.['set_zone_storage_policy']
  const [isBusy, setBusy] = useState(false)
  const [refusal, setRefusal] = useState<Refusal>()
  const change = async (): Promise<void> => {
    if (schema === undefined) return
    const faults = faultsOf(FORM, schema, form.values, t().problem.field)
    form.setErrors(faults)
    if (Object.keys(faults).length > 0) return
    setBusy(true)
    try {
      const { replicas: copies, failure_domain: apart } = form.values
      const body = { replicas: Number(copies), failure_domain: apart === 'rack' ? 'rack' : 'host' } as const
      await call('set_zone_storage_policy', { path: { zone }, body })
      notify(o().policy.changed(zone))
      await readAgain('get_zone_storage_policy', 'list_operator_operations')
      close()
    } catch (error) {
      const refused = asRefusal('set_zone_storage_policy', error)
      setRefusal(refused)
      form.setErrors(refused.fields)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Confirm
      title={o().policy.changeOf(zone)}
      text={o().policy.moves}
      type={zone}
      button={o().policy.change}
      isBusy={isBusy}
      refusal={refusal}
      onConfirm={() => void change()}
      onClose={close}
    >
      {schema === undefined ? <Loading /> : <Fields fields={FORM} body={schema} form={form} />}
    </Confirm>
  )
}
