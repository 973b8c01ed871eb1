//! Parameters that several addresses have.

use serde::Deserialize;
use utoipa::IntoParams;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{RefOr, Schema};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct RunId {
    /// The id of a run, as `GET /runs` lists it.
    #[param(min_length = 1)]
    pub(super) id: String,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct SetKey {
    /// The key of a set of charts, as `GET /bookmarks` lists it.
    #[param(min_length = 1)]
    pub(super) key: String,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct ServerName {
    /// The name of a server, as `GET /live` lists it.
    #[param(min_length = 1)]
    pub(super) name: String,
}

/// Describes a whole number between two bounds, both included.
pub(super) fn integer(minimum: usize, maximum: usize) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::Integer))
        .minimum(Some(minimum))
        .maximum(Some(maximum))
}

/// Describes 1 to `most` ids of runs between commas.
pub(super) fn run_ids(most: usize) -> RefOr<Schema> {
    let id = ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::String))
        .min_length(Some(1))
        .pattern(Some("^[^,]+$"));
    ArrayBuilder::new().items(id).min_items(Some(1)).max_items(Some(most)).into()
}

/// Declares the type of a parameter whose bounds are constants: an attribute takes only literals.
macro_rules! parameter_schema {
    ($name:ident, $schema:expr) => {
        struct $name;

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                $schema
            }
        }

        impl utoipa::ToSchema for $name {}
    };
}

pub(super) use parameter_schema;
