/** The condition of an object that has the name of something on the host that was created for an object with another
 *  uid. What is on the host stays; the host continues with the object when the name is free. */
export const NAME_TAKEN = 'NameTaken'

export const isNameTaken = (
  conditions: readonly { readonly type: string; readonly status: string }[] | undefined,
): boolean => conditions?.some(({ type, status }) => type === NAME_TAKEN && status === 'True') === true
